//! Bad arguments: each is refused with exit status 2 and a message that names it and a remedy. And the help.

use crate::common::{LINERATE, Program, Scratch, linerate, linerate_line};

mod examples;
mod tables;

/// Arguments, and words that the message must contain.
const REFUSED: [(&str, &[&str]); 51] = [
    (
        "bench --rate 0",
        &["--rate", "'0'", "sends nothing", "0.001pps"],
    ),
    (
        "bench --rate 10Tbit/s:l1",
        &[
            "--rate",
            "14,880,952,380",
            "use a lower rate, longer frames, more --cpus",
        ],
    ),
    ("bench --rate 1Gbit/s", &["1Gbit/s", ":l1", ":l2"]),
    (
        "bench --rate 50%",
        &["--rate", "share of line rate", "--link-speed 10G"],
    ),
    (
        "bench --rate 10",
        &["--rate", "The unit is missing", "10pps"],
    ),
    (
        "bench --rate 10k",
        &["--rate", "The unit is missing", "10kpps"],
    ),
    (
        "bench --duration 5",
        &["--duration", "The unit is missing", "5 s"],
    ),
    (
        "run rules --budget 5",
        &["--budget", "'5' has no unit", "5s"],
    ),
    (
        "send --write out.pcap --duration 5",
        &["--duration", "'5' has no unit", "5s"],
    ),
    (
        "bench --variant known-delay=5",
        &["known-delay", "The unit is missing", "5 us"],
    ),
    ("bench --rate fast", &["--rate", "fast"]),
    ("bench --sizes 63", &["--sizes", "63", "64 to 16000"]),
    ("bench --sizes 16001", &["16001", "64 to 16000"]),
    (
        "bench --variant pf",
        &["'pf'", "nft-stateful", "known-loss=N"],
    ),
    ("bench --variant known-rate=0", &["known-rate", "from 1"]),
    ("bench --variant known-delay=1s", &["known-delay", "200us"]),
    (
        "bench --cpus 999",
        &["CPU 999", "not online", "there are [0"],
    ),
    ("bench --cpus 1-0", &["1-0", "write \"0-1\""]),
    ("bench --dut-cpus 0", &["--dut-cpus", "--mode threaded"]),
    ("bench --duration 1ms", &["--duration", "10 ms"]),
    ("bench --flows 0", &["--flows", "5000000"]),
    ("bench --flows 5000001", &["--flows", "5000000"]),
    ("bench --trials 0", &["--trials", "at least 1"]),
    ("bench --budget 100ms", &["--budget", "more time"]),
    ("bench --simulate bogus", &["--simulate", "bogus", "loss=N"]),
    ("bench --simulate rate=10%", &["--simulate", "500kpps"]),
    (
        "search --goal nrd",
        &[
            "--goal",
            "'nrd' is not a goal",
            "ndr",
            "LOSS:FINAL:SUM:EXCEED",
        ],
    ),
    (
        "search --goal ndr --goal rfc2544",
        &["1 s and of 60 s", "one duration for all goals"],
    ),
    (
        "search --min 2Mpps --max 1Mpps",
        &["2000000 frames/s", "must be above 0 and below the highest"],
    ),
    ("search --width 0%", &["--width", "'0%' is nothing"]),
    ("search --step 5%", &["--loss-curve"]),
    (
        "search --loss-curve --step 0%",
        &["--step", "'0%' is nothing"],
    ),
    (
        "search --max 5pps",
        &[
            "--max",
            "below the highest, 5 frames/s",
            "name a lower one with --min",
        ],
    ),
    (
        "rfc2544 --test throughput --verify 2",
        &["--verify", "add --search binary"],
    ),
    (
        "search --min 1pps --duration 100ms",
        &["less than one frame", "longer trials"],
    ),
    ("search --max 1Gbit/s:l1", &["--max", "500 kpps"]),
    ("send -n 5", &["--interface"]),
    ("send --write out.pcap -n 0", &["--count", "--duration"]),
    ("send --write out.pcap -l 13", &["--len", "14"]),
    (
        "send --write out.pcap -6 --size 64",
        &["64 bytes is too short", "at least 84"],
    ),
    ("receive", &["--interface"]),
    ("calc line-rate 0", &["'0'", "10G", "1.488Mpps"]),
    ("calc line-rate 1Gpps --sizes 63", &["63", "64 to 16000"]),
    ("calc budget 10G --clock 3", &["not a clock", "2.4GHz"]),
    ("calc budget", &["--cycles"]),
    ("calc pcie 9x9", &["PCIe 9 x9 does not exist", "1 to 6"]),
    ("calc pf-states 0", &["states of 0 is impossible", "from 1"]),
    ("calc bdp --link 10G", &["two of link speed"]),
    ("calc rss --queues 300", &["queues of 300", "from 1 to 128"]),
    (
        "calc trials --difference 0% --deviation 1%",
        &["difference of 0 % is impossible"],
    ),
    ("calc convert 1Gbit/s", &["1Gbit/s:l1", "1Gbit/s:l3"]),
];

#[test]
fn bad_arguments_are_refused_with_what_to_do() {
    let scratch = Scratch::new();
    for (line, says) in REFUSED {
        linerate_line(line).dir(scratch.path()).run().fails(2, says);
    }
    assert_eq!(
        std::fs::read_dir(scratch.path()).unwrap().count(),
        0,
        "something was left behind"
    );
}

/// A FIFO would be waited for.
#[test]
fn files_are_regular_ones_and_what_a_shell_hands_over() {
    let scratch = Scratch::new();
    let fifo = scratch.file("fifo");
    Program::new("mkfifo").args([&fifo]).run().ok();
    std::fs::create_dir(scratch.file("records")).unwrap();
    Program::new("mkfifo")
        .args([scratch.file("records/campaign.json")])
        .run()
        .ok();
    let lines = [
        "plan check FIFO",
        "plan show FIFO",
        "lab check FIFO",
        "stat FIFO",
        "compare FIFO FIFO",
        "conduct FIFO",
        "receive --read FIFO",
        "import benchlab FIFO",
        "reproduce . --mapping FIFO",
        "run FIFO --simulate ok",
        "show records",
    ];
    for line in lines {
        let ended = linerate_line(&line.replace("FIFO", &fifo))
            .dir(scratch.path())
            .within(20)
            .run()
            .no_panic();
        assert!(!ended.status.success(), "{line}");
        assert!(
            ended.stderr.contains("not a regular file"),
            "{line}: {}",
            ended.stderr
        );
    }
    let numbers = "printf '%s\\n' 1 2 3 4 5";
    for line in [
        format!("{LINERATE} stat <({numbers}) <({numbers})"),
        format!("{numbers} | {LINERATE} stat /dev/stdin"),
        format!("{numbers} | {LINERATE} stat -"),
        format!("{LINERATE} plan check <({LINERATE} plan example)"),
        format!(
            "{LINERATE} lab example three-hosts | {LINERATE} plan check /dev/stdin; [ $? = 2 ]"
        ),
    ] {
        Program::new("bash")
            .args(["-c", &line])
            .within(20)
            .run()
            .ok();
    }
}

/// This machine is never measured in place of a lab.
#[test]
fn a_lab_file_that_is_not_there_is_an_error_of_each_verb() {
    let scratch = Scratch::new();
    for line in [
        "search --max 1kpps",
        "search --max 1kpps --simulate ok",
        "rfc2544 --link-speed 1G",
        "rfc2544 --link-speed 1G --simulate ok",
        "rfc2544 --estimate",
        "run lab/forwarding",
        "run lab/forwarding --simulate ok",
        "rfc2544 lab/forwarding --estimate",
        "tune lab/tuning",
        "tune lab/tuning --simulate ok",
        "plan show lab/forwarding",
    ] {
        let ended = linerate_line(&format!("{line} --lab no-such.toml"))
            .dir(scratch.path())
            .run();
        ended.fails(1, &["no-such.toml", "No such file"]);
    }
    linerate_line("search --system freebsd --simulate ok")
        .run()
        .fails(2, &["--lab"]);
    assert_eq!(
        std::fs::read_dir(scratch.path()).unwrap().count(),
        0,
        "something was left behind"
    );
}

#[test]
fn bad_flow_ranges_are_refused() {
    let scratch = Scratch::new();
    let cases: [(&str, &str, &[&str]); 6] = [
        (
            "198.18.10.20-198.18.10.1",
            "198.19.10.1",
            &["198.18.10.20", "backwards", "write 198.18.10.1"],
        ),
        (
            "198.18.10.1:20-198.18.10.1:10",
            "198.19.10.1",
            &["backwards"],
        ),
        ("198.18.10.1", "2001:2::1", &["IPv"]),
        ("198.18.10.300", "198.19.10.1", &["198.18.10.300"]),
        ("198.18.10.1:70000", "198.19.10.1", &["70000"]),
        ("", "198.19.10.1", &[]),
    ];
    for (source, destination, says) in cases {
        let program = linerate([
            "send",
            "--write",
            "out.pcap",
            "-s",
            source,
            "-d",
            destination,
        ]);
        program.dir(scratch.path()).run().fails(2, says);
    }
    let wrong = "send --write out.pcap -6 -s 198.18.10.1:1-198.18.10.2 -d 198.19.10.1";
    linerate_line(wrong)
        .dir(scratch.path())
        .run()
        .fails(2, &["IPv4", "-4 or -6"]);
    assert!(!scratch.path().join("out.pcap").exists());
}

#[test]
fn files_that_cannot_be_are_named() {
    linerate_line("send --write /nonexistent/out.pcap")
        .run()
        .fails(1, &["/nonexistent/out.pcap", "No such file"]);
    linerate_line("receive --read /nonexistent/in.pcap")
        .run()
        .fails(1, &["/nonexistent/in.pcap", "No such file"]);
    let scratch = Scratch::new();
    let file = scratch.file("noise");
    for noise in [
        "",
        "no capture at all, but long enough for a header",
        "\u{0}",
    ] {
        std::fs::write(&file, noise).unwrap();
        linerate(["receive", "--read", &file])
            .run()
            .fails(1, &[&file]);
    }
    linerate_line("bench --simulate ok --trials 1 --out /proc/no")
        .run()
        .fails(1, &["/proc/no"]);
}

#[test]
fn interfaces_that_are_not_there_are_named() {
    for verb in ["send", "receive"] {
        linerate_line(&format!("{verb} -i nosuch0"))
            .run()
            .fails(1, &["nosuch0"]);
        linerate_line(&format!("{verb} -i lo --isolated-lab lo"))
            .run()
            .fails(1, &["loopback", "RFC 6815"]);
        linerate_line(&format!("{verb} -i x0 --netns nosuchns"))
            .run()
            .fails(1, &["nosuchns"]);
    }
}

/// Every verb reports it and fails if standard output is full or closed; a reader that has closed the pipe is no error.
#[test]
fn output_that_does_not_arrive_is_an_error() {
    let scratch = Scratch::new();
    for (file, text) in [("a.pps", "1\n2\n3\n4\n"), ("b.pps", "2\n3\n4\n6\n")] {
        std::fs::write(scratch.file(file), text).unwrap();
    }
    let results = scratch.path().join("archive/cpu/card/topic/results/label");
    std::fs::create_dir_all(&results).unwrap();
    std::fs::write(results.join("forwarding.pps"), "1000000\n1000001\n").unwrap();
    let bench = "bench --simulate ok --family 4 --trials 1 --duration 20ms";
    linerate_line(&format!("{bench} --out campaign"))
        .dir(scratch.path())
        .run()
        .ok();
    let shell = |line: &str, to: &str| {
        let script = format!("{{ {LINERATE} {line} {to}; }}");
        Program::new("sh")
            .args(["-c", &script])
            .dir(scratch.path())
            .run()
            .no_panic()
    };
    for line in [
        "--help",
        "--version",
        "help send",
        bench,
        &format!("{bench} --json"),
        "show campaign --trials",
        "show campaign --json",
        "show --schema",
        "compare a.pps b.pps",
        "compare a.pps b.pps --json",
        "stat --full a.pps b.pps",
        "stat --json a.pps",
        "history campaign --json",
        "import netbenches archive",
        "import netbenches archive --json",
        "rules pf --stateless",
        "plan list",
        "plan list --json",
        "plan schema",
        "plan example",
        "plan show rules",
        "lab example",
        "lab schema",
        "send --write frames.pcap -n 10",
        "receive --read frames.pcap",
        "receive --read frames.pcap --json",
    ] {
        shell(line, "> /dev/full").fails(1, &["standard output", "No space left"]);
        shell(line, ">&-").fails(1, &["standard output", "Bad file descriptor"]);
        let read = shell(line, "2>&1; echo \"status $?\" >&2; } | { head -n 1").stderr;
        assert_eq!(read, "status 0\n", "{line}");
    }
    // Nor is a standard error that takes nothing a reason to panic.
    shell("show ./nosuch", "2> /dev/full").status(1);
    for line in [
        "export parquet campaign -o x.parquet",
        "show campaign -o page.html",
    ] {
        let script = format!("ulimit -f 1; exec {LINERATE} {line}");
        let ended = Program::new("sh").args(["-c", &script]).dir(scratch.path());
        ended.run().fails(1, &["File too large"]);
    }
}

#[test]
fn help_lists_what_the_verb_takes() {
    let help = linerate_line("tune --help").run().ok().stdout;
    assert!(
        help.contains("--budget") && !help.contains("--fail-if-slower"),
        "{help}"
    );
    linerate_line("tune tune --fail-if-slower 3%")
        .run()
        .fails(2, &["--fail-if-slower is for `linerate run`"]);
}

#[test]
fn connections_without_a_value_are_requests() {
    let plan = |option: &str| {
        let line = format!("bench --variant nft-stateful {option} --trials 1 --print-plan");
        linerate_line(&line).run().ok().stdout
    };
    assert_eq!(plan("--connections"), plan("--connections request"));
    for verb in ["bench", "search"] {
        let help = linerate([verb, "--help"]).run().ok().stdout;
        let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("without a value: request"), "{help}");
    }
}

#[test]
fn help_teaches_by_example() {
    let verbs = ["bench", "send", "receive", "lab", "show", "stat", "rules"];
    let overview = linerate_line("--help").run().ok().stdout;
    for verb in verbs {
        assert!(overview.contains(verb), "{verb}");
        let help = linerate([verb, "--help"]).run().ok().stdout;
        assert!(help.contains("Example"), "{verb}: {help}");
        assert!(help.contains(&format!("linerate {verb}")), "{verb}: {help}");
        assert!(
            linerate([verb, "-h"])
                .run()
                .ok()
                .stdout
                .starts_with(help.lines().next().unwrap())
        );
    }
    for action in ["up", "down", "status"] {
        linerate(["lab", action, "--help"]).run().ok();
    }
    let version = linerate_line("--version").run().ok().stdout;
    assert_eq!(version, format!("linerate {}\n", env!("CARGO_PKG_VERSION")));
    linerate([""; 0]).run().fails(2, &["bench"]);
    linerate(["bensch"]).run().fails(2, &["bensch", "bench"]);
}

/// Every example of the help that needs no privilege works as described.
#[test]
fn the_documents_of_make_install_are_written() {
    let scratch = Scratch::new();
    linerate(["documents", scratch.path().to_str().unwrap()])
        .run()
        .ok();
    for file in [
        "linerate.1",
        "linerate-bench.1",
        "linerate.bash",
        "_linerate",
        "linerate.fish",
    ] {
        assert!(
            std::fs::metadata(scratch.path().join(file)).unwrap().len() > 100,
            "{file}"
        );
    }
}

#[test]
fn conformance_is_computed_from_records_and_needs_a_claim() {
    let scratch = Scratch::new();
    let made = |line: &str, out: &str| {
        linerate_line(&format!("{line} --simulate rate=500kpps --out {out}"))
            .dir(scratch.path())
            .within(60)
            .run()
            .ok();
    };
    made("search --loss-curve --duration 20ms", "curve");
    let said = [
        "RFC 2544 frame-loss: no claim, because the DUT is simulated",
        "2544-26.3a  S",
        "2544-24a",
        "08 00 45 00",
    ];
    let ended = linerate_line("conformance curve")
        .dir(scratch.path())
        .run()
        .fails(3, &[]);
    for part in said {
        assert!(ended.stdout.contains(part), "no {part} in {}", ended.stdout);
    }
    let json = linerate_line("conformance curve --json")
        .dir(scratch.path())
        .run()
        .fails(3, &[])
        .stdout;
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["rows"].as_array().unwrap().len(), 107);
    let row = |id: &str| {
        found["rows"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(row("2544-26.3a")["status"], "met", "{}", row("2544-26.3a"));
    assert_eq!(row("2544-24a")["status"], "deviation");
    made("bench --duration 20ms --trials 2", "rates");
    linerate_line("conformance rates")
        .dir(scratch.path())
        .run()
        .fails(1, &["rates has no test of RFC 2544", "linerate rfc2544"]);
}

#[test]
fn messages_name_what_there_is_and_what_to_do() {
    let scratch = Scratch::new();
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run();
    let absent =
        run("bench --rules nosuch.nft").fails(2, &["nosuch.nft", "name a file that exists"]);
    assert!(
        !absent.stderr.contains("plan's folder"),
        "{}",
        absent.stderr
    );
    std::fs::create_dir(scratch.file("plans")).unwrap();
    let plan = "[variants.own]\nrules = { file = \"nosuch.nft\" }\n";
    std::fs::write(scratch.file("plans/own.toml"), plan).unwrap();
    run("run plans/own.toml").fails(2, &["in plans, the plan's folder"]);
    let rules = "add rule inet filter forward accept\n".repeat(300);
    std::fs::write(scratch.file("office.nft"), rules).unwrap();
    let told = run("rfc2544 --lab office.nft --size 64").status(2).stderr;
    assert!(
        told.contains("office.nft has ") && told.contains(" more faults."),
        "{told}"
    );
    assert_eq!(told.matches("office.nft:").count(), 10, "{told}");
    run("conformance").fails(2, &["linerate-results has no campaign"]);
    run("run lab/forwarding --quick --lab LAB.toml").fails(
        2,
        &[
            "no quick form",
            "linerate plan example lab/forwarding > my.toml",
        ],
    );
    std::fs::create_dir(scratch.file("saved")).unwrap();
    std::fs::write(
        scratch.file("saved/uname-a.txt"),
        "OpenBSD r 7.8 GENERIC#1 amd64",
    )
    .unwrap();
    for verb in ["explain", "watch"] {
        let ways = [
            "linerate facts saved",
            "linerate advise saved",
            "linerate watch root@router",
        ];
        run(&format!("{verb} saved")).fails(2, &[&ways[..], &["no load"]].concat());
    }
    let [plain, option] =
        ["80ms", "--rtt 80ms"].map(|rtt| run(&format!("calc bdp 1G {rtt}")).ok().stdout);
    assert_eq!(plain, option);
    run("bench --family 4 --trials 1 --simulate ok --out simulated").ok();
    run("run simulated").fails(2, &["simulated was simulated", "--simulate ok"]);
    let item = run("advise saved --release 7.8 --item linux-rps");
    item.fails(2, &["linux-rps", "it is for Linux"]);
    let folder = run("advise fact.invalid");
    folder.fails(1, &["there is no folder fact.invalid", "no address"]);
}

#[test]
fn a_proof_that_no_plan_can_make_names_another_way() {
    let scratch = Scratch::new();
    let run = |line: &str| linerate_line(line).dir(scratch.path()).run();
    let rules = "table ip filter {\n chain forward {\n  type filter hook forward priority 0; policy accept;\n }\n}\n";
    std::fs::write(scratch.file("fw.nft"), rules).unwrap();
    run("bench --simulate ok --family 4 --rules fw.nft --budget 2s --quiet --out own").ok();
    let told = run("explain own --prove").status(5).stderr;
    let command = "linerate bench --rules fw.nft --rules COPY";
    assert!(told.contains(command), "{told}");
}
