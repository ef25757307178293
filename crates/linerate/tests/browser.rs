//! Pages in a real browser.

use crate::common::browser::{Browser, ENTER, ESCAPE, TAB};
use crate::common::{Scratch, linerate_line, wait_for};
use serde_json::Value;

/// Records of a simulated campaign, and the file of their page.
fn simulated(folder: &Scratch) -> [String; 2] {
    let files = ["campaign", "report.html"].map(|name| folder.file(name));
    let load = "--simulate rate=100kpps,queue=1000 --sizes 64,512,1518 --rate 120kpps --trials 3";
    linerate_line(&format!("bench {load} --out {}", files[0]))
        .run()
        .ok();
    files
}

#[test]
#[cfg_attr(not(chromedriver), ignore = "needs chromedriver")]
fn a_report_is_drawn_sorted_and_reached_by_keys() {
    let folder = Scratch::new();
    let [records, file] = simulated(&folder);
    linerate_line(&format!("report {records} -o {file}"))
        .run()
        .ok();
    let browser = Browser::new();
    browser.open(&file);
    let count = |selector: &str| {
        browser
            .run(&format!(
                "return document.querySelectorAll({selector:?}).length"
            ))
            .as_u64()
            .unwrap()
    };
    assert!(count("figure svg circle") > 20, "trials and marks");
    assert!(
        count("figure svg rect[rx='4']") == 3
            && count("details") >= 2
            && count("nav.contents a") > 5
    );
    assert_eq!(
        count("figure"),
        count("figure svg"),
        "each picture is drawn"
    );
    assert_eq!(
        count("figure") - 1,
        count("figure a[download]"),
        "each has its data, but for the lab"
    );
    sorts(&browser);
    reaches_all(&browser);
    for dark in [false, true] {
        for width in [400, 2400] {
            browser.look(width, dark);
            let wide = browser.run("return document.documentElement.scrollWidth");
            assert!(
                wide.as_u64() <= Some(width.into()),
                "{wide} points wide in {width}"
            );
        }
        let luminance = |of: &str| {
            let color = browser.run(&format!("return getComputedStyle(document.body).{of}"));
            let parts = color.as_str().unwrap().split(|c: char| !c.is_ascii_digit());
            parts
                .filter_map(|n| n.parse::<u32>().ok())
                .take(3)
                .sum::<u32>()
        };
        assert_eq!(luminance("color") > luminance("backgroundColor"), dark);
    }
    assert_eq!(browser.console(), Vec::<String>::new());
    hostile(&records);
    linerate_line(&format!("report {records} {records} -o {file}"))
        .run()
        .ok();
    browser.open(&file);
    assert_eq!(
        browser.run(
            "return window.ran === undefined && document.querySelector('img, main script') === null"
        ),
        true
    );
    assert!(
        browser
            .run("return document.body.innerText")
            .as_str()
            .unwrap()
            .contains("</script><script>")
    );
    zooms(&browser);
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Gives all names of records a text that ends what is around it, and one DUT a profile with such functions.
fn hostile(records: &str) {
    const NAME: &str =
        "]]>\u{7}</script><script>ran = 1</script><img src=x onerror='ran = 2'>\" onload=\"ran = 3";
    fn rename(value: &mut Value) {
        match value {
            Value::Object(all) => all.iter_mut().for_each(|(key, value)| match value {
                Value::String(text)
                    if [
                        "name",
                        "plan_variant",
                        "frame",
                        "title",
                        "cpu_model",
                        "kernel",
                    ]
                    .contains(&key.as_str()) =>
                {
                    *text += NAME;
                }
                value => rename(value),
            }),
            Value::Array(all) => all.iter_mut().for_each(rename),
            _ => {}
        }
    }
    let change = |file: &str, change: &dyn Fn(&mut Value)| {
        let path = format!("{records}/{file}");
        let mut document = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut document);
        std::fs::write(path, document.to_string()).unwrap();
    };
    ["campaign.json", "host.json"]
        .iter()
        .for_each(|file| change(file, &rename));
    change("summary.json", &|summary| {
        let slot = summary["rows"].as_array().unwrap().len() - 1;
        let stacks = format!("profiles/{}.stack", slot + 1);
        std::fs::create_dir_all(format!("{records}/profiles")).unwrap();
        let lines = format!(
            "main;a;{} 60\nmain;a;b 30\nmain;c 10\n",
            NAME.replace([';', '\u{7}'], "")
        );
        std::fs::write(format!("{records}/{stacks}"), lines).unwrap();
        summary["profiles"] = serde_json::json!([{
            "slot": slot, "event": "cpu-clock", "samples": 100, "user": 0, "lost": 0, "received": null,
            "rates": [], "frames": 0, "counted": {}, "stacks": stacks, "functions": [], "stages": null, "events": null, "missing": [],
        }]);
    });
}

/// A click on a function of a flame graph makes it as wide as the picture, Escape undoes it, and a text is searched for.
fn zooms(browser: &Browser) {
    let width = |name: &str| {
        let of = format!(
            "const of = [...document.querySelector('.flames').querySelectorAll('g')].find(g => g.querySelector('title').textContent.startsWith('{name} ('));
            return of.style.display === '' ? parseFloat(of.querySelector('rect').getAttribute('width')) : 0"
        );
        browser.run(&of).as_f64().unwrap()
    };
    assert!(
        (width("c") - 10.0).abs() < 1.0 && (width("a") - 90.0).abs() < 1.0,
        "{} {}",
        width("c"),
        width("a")
    );
    browser.run("[...document.querySelector('.flames').querySelectorAll('g')].find(g => g.textContent.startsWith('a (')).querySelector('rect').id = 'target'");
    browser.click("#target");
    assert_eq!([width("a"), width("c"), width("main")], [100.0, 0.0, 100.0]);
    browser.run("document.querySelector('.flames').focus()");
    browser.press(ESCAPE);
    assert!((width("c") - 10.0).abs() < 1.0, "{}", width("c"));
    browser.click(".tools input");
    browser.press("ONERROR");
    let says = browser.run("return document.querySelector('.flames + [role=status]').textContent");
    assert!(says.as_str().unwrap().starts_with("60.0 %"), "{says}");
    assert_eq!(
        browser.run(
            "return document.querySelectorAll('.flames')[0].querySelectorAll('.found').length"
        ),
        1
    );
}

/// A table is in the order of a column once its head was clicked, and in the other one once Enter was pressed.
fn sorts(browser: &Browser) {
    let values = || -> Vec<f64> {
        let cells = browser.run("return [...document.querySelectorAll('tbody tr')].filter(row => row.closest('table') === document.querySelector('table')).map(row => row.cells[1].dataset.value)");
        cells
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().parse().unwrap())
            .collect()
    };
    let by = || browser.run("return document.querySelector('table th:nth-child(2)').ariaSort");
    browser.click("table th:nth-child(2) button");
    let up = values();
    assert!(up.len() > 1 && up.is_sorted(), "{up:?}");
    assert_eq!(by(), "ascending");
    browser.press(ENTER);
    assert!(values().iter().rev().is_sorted(), "{:?}", values());
    assert_eq!(by(), "descending");
    // Rows of IMIX stay below their cells.
    let rows = browser.run(
        "const of = [...document.querySelectorAll('table')].find(of => of.innerText.includes('simple IMIX'));
        for (const _ of [1, 2]) of.tHead.rows[0].cells[1].querySelector('button').click();
        return [...of.tBodies[0].rows].map(row => [row.cells[0].innerText.includes('IMIX'), Number(row.cells[1].dataset.value)])",
    );
    let rows: Vec<(bool, f64)> = serde_json::from_value(rows).unwrap();
    assert!(
        rows.len() > 2
            && rows
                .iter()
                .enumerate()
                .all(|(at, (imix, _))| *imix == (at % 2 == 1)),
        "{rows:?}"
    );
    assert!(
        rows.iter()
            .step_by(2)
            .rev()
            .map(|(_, share)| *share)
            .is_sorted(),
        "{rows:?}"
    );
}

/// Tab goes to every link, button, field, scroll region and folded part, and marks where it is.
fn reaches_all(browser: &Browser) {
    let all = browser.run(
        "document.activeElement.blur();
        window.wanted = [...document.querySelectorAll('a[href], button, input, summary, [tabindex=\"0\"], .scroll')].filter(e => e.checkVisibility());
        window.reached = new Set();
        window.unmarked = [];
        addEventListener('focusin', event => {
            reached.add(event.target);
            const style = getComputedStyle(event.target);
            if (style.outlineStyle === 'none') unmarked.push(event.target.outerHTML.slice(0, 80));
        });
        return wanted.length",
    );
    let all = all.as_u64().unwrap() as usize;
    assert!(all > 5, "{all}");
    browser.press(&TAB.repeat(all + 2));
    let missed = browser
        .run("return wanted.filter(e => !reached.has(e)).map(e => e.outerHTML.slice(0, 80))");
    assert_eq!(missed, Value::Array(Vec::new()));
    assert_eq!(browser.run("return unmarked"), Value::Array(Vec::new()));
}

#[test]
#[cfg_attr(not(chromedriver), ignore = "needs chromedriver")]
fn a_site_is_searched_from_a_disk_and_loads_its_index_alone() {
    let records = Scratch::new();
    let folder = records
        .path()
        .join("archive/M_4Cores/C/a \"topic\"/results/<script>");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("pf-stateful.pps"),
        "1000000\n1010000\n1020000\n",
    )
    .unwrap();
    std::fs::write(
        folder.join("<img src=x onerror=alert(1)>.pps"),
        "2000000\n2010000\n2020000\n",
    )
    .unwrap();
    linerate_line(&format!(
        "site {} -o {}",
        records.file("archive"),
        records.file("site")
    ))
    .run()
    .ok();
    let browser = Browser::new();
    browser.open(&records.file("site/index.html"));
    let loaded = || {
        browser.run(
            "return [...document.querySelectorAll('[src], link')].map(e => e.src.split('/').pop())",
        )
    };
    assert_eq!(
        loaded(),
        Value::Array(Vec::new()),
        "nothing is loaded before the first letter"
    );
    browser.click(".search input");
    browser.press("stateful");
    let found = crate::common::wait_for("the index", || {
        let rows = browser.run(
            "return [...document.querySelectorAll('.search tbody tr')].map(row => row.innerText)",
        );
        rows.as_array()
            .filter(|rows| rows.len() == 1)
            .map(|rows| rows[0].as_str().unwrap().to_string())
    });
    assert!(
        found.contains("1.010 Mpps") && found.contains("<script>"),
        "{found}"
    );
    assert_eq!(loaded(), serde_json::json!(["sets.js"]));
    // Neither another file nor a script that somebody put into a page.
    let refused = browser.run(
        "const script = document.createElement('div');
        script.innerHTML = '<script src=\"sets.js\"></script><img src=\"x.png\" onerror=\"window.ran = 1\">';
        document.body.append(script);
        return fetch('sets.js').then(() => 'loaded', () => 'refused')",
    );
    assert_eq!(refused, "refused");
    assert_eq!(browser.run("return window.ran === undefined"), true);
    browser.console();
    browser.press(&"\u{e003}".repeat(8));
    browser.press("onerror");
    browser.run(
        "const topic = document.querySelectorAll('.search select')[2];
        topic.value = '0';
        topic.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    let searched = "return [document.querySelector('.search input').value,
        document.querySelectorAll('.search select')[2].value, document.querySelectorAll('.search tbody tr').length]";
    let before = browser.run(searched);
    assert_eq!(before, serde_json::json!(["onerror", "0", 1]));
    let address = browser.run("return location.href");
    browser.click(".search tbody a");
    let title = browser.run("return document.title");
    assert!(title.as_str().unwrap().contains("<script>"), "{title}");
    // A search stays on the way back, and in its address.
    browser.run("history.back()");
    let again = || (browser.run(searched) == before).then_some(());
    crate::common::wait_for("the search on the way back", again);
    browser.open("/dev/null");
    browser.open(address.as_str().unwrap().trim_start_matches("file://"));
    crate::common::wait_for("the search by its address", again);
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
#[cfg_attr(not(chromedriver), ignore = "needs chromedriver")]
fn what_is_open_stays_open_when_a_served_page_is_loaded_again() {
    let folder = Scratch::new();
    let [records, _] = simulated(&folder);
    let line = format!("serve {records} --listen 127.0.0.1:0");
    let mut server = linerate_line(&line).start();
    let line = server.wait_for_line("http://");
    let address = line.split(' ').find(|word| word.starts_with("http://"));
    let browser = Browser::new();
    browser.open(address.unwrap());
    let open = || {
        let titles = browser.run("return [...document.querySelectorAll('details[open] > summary')].map(of => of.textContent)");
        titles.as_array().unwrap().clone()
    };
    assert_eq!(open(), Vec::<Value>::new());
    browser.click("details > summary");
    let before = open();
    assert_eq!(before.len(), 1);
    browser.run("window.before = true; location.reload()");
    wait_for("the page again", || {
        let again = "return window.before === undefined && document.readyState === 'complete'";
        (browser.run(again) == true).then_some(())
    });
    assert_eq!(open(), before);
    browser.click("details[open] > summary");
    assert_eq!(open(), Vec::<Value>::new());
    assert_eq!(browser.console(), Vec::<String>::new());
    server.signal(2);
    server.wait().ok();
}
