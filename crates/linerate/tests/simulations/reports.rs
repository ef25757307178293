//! Pages and reports: their words, pictures and figures.

use crate::common::{Scratch, linerate_line};

/// Rows of docs/conformance.md that are about the report: the words that meet them are printed.
#[test]
fn the_page_has_what_the_documents_ask_of_a_report() {
    let records = Scratch::new();
    let out = records.file("tests");
    let line = "rfc2544 --quick --duration 50ms --repeats 1 --size 64 --size 128 --test throughput --test latency \
                --test frame-loss --test back-to-back --simulate rate=20kpps,queue=64 --link-speed 20160kbit/s";
    linerate_line(&format!("{line} --out {out}"))
        .run()
        .no_panic();
    let shown = linerate_line(&format!("show --full {out}"))
        .run()
        .ok()
        .stdout;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for (row, said) in [
        (
            "2544-26.1b",
            "x: frame size in bytes, with FCS; y: throughput, kpps - theoretical rate of the medium",
        ),
        (
            "2544-26.1c",
            "frames/s of 64 B; theoretical limit 30,000 frames/s; IPv4 UDP",
        ),
        ("2544-26.2f", "nearest to RFC 1242's store-and-forward"),
        (
            "9004-5b",
            "100 % of the load is the theoretical rate of the slower link",
        ),
        (
            "2544-26.3c",
            "x: offered load, % of the theoretical rate of the medium; y: frame loss, %",
        ),
        (
            "9971-4.3",
            "load offered forwarded sent lost loss % kpps kpps frames frames %",
        ),
        ("9971-4.4.3", "departs from RFC 2544 (sections 9, 23,"),
        ("9971-4.6.5", "bounds within 0.50 % of the upper one"),
    ] {
        assert!(shown.contains(said), "{row}: no '{said}' in {shown}");
    }
}

#[test]
fn a_report_is_one_page_with_a_picture() {
    let records = Scratch::new();
    let [out, file] = ["campaign", "report.html"].map(|name| records.file(name));
    linerate_line(&format!("bench --simulate ok --trials 3 --out {out}"))
        .run()
        .ok();
    let told = linerate_line(&format!("report {out} -o {file}")).run().ok();
    assert!(
        told.stderr.contains("report.html") && told.stdout.is_empty(),
        "{told:?}"
    );
    let page = std::fs::read_to_string(&file).unwrap();
    for what in [
        "SIMULATED",
        "<svg",
        "Forwarding rate of each cell",
        "How it was measured",
        "default-src 'none'",
    ] {
        assert!(page.contains(what), "{what} in {page}");
    }
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let again = linerate_line(&format!("report {out}")).run().ok();
    assert_eq!(again.stdout, page, "the same records give the same page");
    let both = linerate_line(&format!("report {out} {out}"))
        .run()
        .ok()
        .stdout;
    assert!(
        both.contains("<h1>2 campaigns</h1>") && both.len() > page.len(),
        "{both}"
    );
    let asked = linerate_line(&format!(
        "bench --simulate ok --trials 3 --report --out {out}-2"
    ))
    .run()
    .ok();
    assert!(asked.stderr.contains("campaign-2/report.html"), "{asked:?}");
    assert!(
        std::fs::read_to_string(format!("{out}-2/report.html"))
            .unwrap()
            .contains("<svg")
    );
    linerate_line("report /nonexistent")
        .run()
        .fails(1, &["/nonexistent"]);
}
