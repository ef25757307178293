//! Pages in a real browser.

mod common;

use common::browser::{Browser, ENTER, TAB};
use common::{Scratch, linerate_line};
use serde_json::Value;

/// A page of a simulated campaign in a browser.
fn opened(records: &Scratch, name: &str) -> (Browser, String) {
    let [out, file] = ["campaign", name].map(|name| records.file(name));
    linerate_line(&format!(
        "bench --simulate rate=100kpps,queue=1000 --sizes 64,512,1518 --rate 120kpps --trials 3 --out {out}"
    ))
    .run()
    .ok();
    linerate_line(&format!("report {out} -o {file}")).run().ok();
    let browser = Browser::new();
    browser.open(&file);
    (browser, file)
}

#[test]
#[cfg_attr(not(chromedriver), ignore = "needs chromedriver")]
fn a_report_is_drawn_sorted_and_reached_by_keys() {
    let records = Scratch::new();
    let (browser, _) = opened(&records, "report.html");
    let count =
        |selector: &str| browser.run(&format!("return document.querySelectorAll({selector:?}).length"));
    assert!(count("figure svg circle").as_u64() > Some(5), "trials and marks");
    sorts(&browser);
    reaches_all(&browser);
    for dark in [false, true] {
        for width in [400, 2400] {
            browser.look(width, dark);
            let wide = browser.run("return document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(width.into()), "{wide} points wide in {width}");
        }
        let luminance = |of: &str| {
            let color = browser.run(&format!("return getComputedStyle(document.body).{of}"));
            let parts = color
                .as_str()
                .unwrap()
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|n| n.parse::<u32>().ok());
            parts.take(3).sum::<u32>()
        };
        assert_eq!(luminance("color") > luminance("backgroundColor"), dark);
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// A table is in the order of a column once its head was clicked, and in the other one once Enter was pressed.
fn sorts(browser: &Browser) {
    let values = || -> Vec<f64> {
        let cells = browser.run("return [...document.querySelectorAll('tbody tr')].filter(row => row.closest('table') === document.querySelector('table')).map(row => row.cells[1].dataset.value)");
        cells.as_array().unwrap().iter().map(|text| text.as_str().unwrap().parse().unwrap()).collect()
    };
    let by = || browser.run("return document.querySelector('table th:nth-child(2)').ariaSort");
    browser.click("table th:nth-child(2) button");
    let up = values();
    assert!(up.len() > 1 && up.is_sorted(), "{up:?}");
    assert_eq!(by(), "ascending");
    browser.press(ENTER);
    assert!(values().iter().rev().is_sorted(), "{:?}", values());
    assert_eq!(by(), "descending");
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
    let missed = browser.run("return wanted.filter(e => !reached.has(e)).map(e => e.outerHTML.slice(0, 80))");
    assert_eq!(missed, Value::Array(Vec::new()));
    assert_eq!(browser.run("return unmarked"), Value::Array(Vec::new()));
}

#[test]
#[cfg_attr(not(chromedriver), ignore = "needs chromedriver")]
fn a_site_is_searched_from_a_disk_and_loads_its_index_alone() {
    let records = Scratch::new();
    let folder = records.path().join("archive/M_4Cores/C/a \"topic\"/results/<script>");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("pf-stateful.pps"), "1000000\n1010000\n1020000\n").unwrap();
    std::fs::write(folder.join("<img src=x onerror=alert(1)>.pps"), "2000000\n2010000\n2020000\n").unwrap();
    linerate_line(&format!("site {} -o {}", records.file("archive"), records.file("site"))).run().ok();
    let browser = Browser::new();
    browser.open(&records.file("site/index.html"));
    let loaded = || {
        browser.run("return [...document.querySelectorAll('[src], link')].map(e => e.src.split('/').pop())")
    };
    assert_eq!(loaded(), Value::Array(Vec::new()), "nothing is loaded before the first letter");
    browser.click(".search input");
    browser.press("stateful");
    let found = common::wait_for("the index", || {
        let rows = browser
            .run("return [...document.querySelectorAll('.search tbody tr')].map(row => row.innerText)");
        rows.as_array().filter(|rows| rows.len() == 1).map(|rows| rows[0].as_str().unwrap().to_string())
    });
    assert!(found.contains("1.010 Mpps") && found.contains("<script>"), "{found}");
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
    browser.click(".search tbody a");
    let title = browser.run("return document.title");
    assert!(title.as_str().unwrap().contains("<script>"), "{title}");
    assert_eq!(browser.console(), Vec::<String>::new());
}
