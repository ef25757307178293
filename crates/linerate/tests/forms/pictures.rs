//! Pictures as files of SVG.

use super::{campaign, elements, export};
use crate::common::{Scratch, linerate};
use std::fs;

#[test]
fn a_picture_is_a_file_of_its_own() {
    let scratch = Scratch::new();
    let records = campaign(&scratch, 8);
    let list = export("picture", &records).stdout;
    assert!(
        list.contains("  1  Forwarding rate of each cell\n"),
        "{list}"
    );
    assert!(
        list.contains("  The lab\n") && list.contains("  Flame graph: forwarding\n"),
        "{list}"
    );
    for at in 1..=list.lines().count() {
        let file = scratch.file(&format!("{at}.svg"));
        linerate(["export", "picture", &records, &at.to_string(), "-o", &file])
            .run()
            .ok();
        let svg = fs::read_to_string(&file).unwrap();
        let all = elements(&svg);
        let known =
            |c: char| c == '\n' || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'));
        assert!(svg.chars().all(known), "{svg:?}");
        let (name, _, attributes) = &all[0];
        assert!(name == "svg" && attributes["xmlns"] == "http://www.w3.org/2000/svg");
        assert!(
            all.iter().any(|(name, _, a)| name == "rect"
                && a["fill"] == "#FFFFFF"
                && a["width"] == "100%")
        );
        assert!(all.iter().all(|(name, _, a)| name != "script"
            && !a.contains_key("class")
            && !a.contains_key("style")));
        assert!(
            svg.contains("SIMULATED") && svg.contains("linerate 0."),
            "{svg}"
        );
    }
    let named = [
        "export",
        "picture",
        &records,
        "Forwarding rate of each cell",
    ];
    assert!(linerate(named).run().ok().stdout.contains("&lt;b a="));
    linerate(["export", "picture", &records, "none"])
        .run()
        .fails(2, &["no picture 'none'", "1  Forwarding rate"]);
    linerate(["export", "picture", &records, "1", "-o", "x.png"])
        .run()
        .fails(2, &["rsvg-convert"]);
}
