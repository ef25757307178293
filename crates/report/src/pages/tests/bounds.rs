//! Lines have a width, and records that do not fit together are no panic.

use super::*;

#[test]
fn no_line_is_wider_than_asked_and_all_is_ascii() {
    let mut c = campaign(Mode::Threaded);
    c.slots[1].variant = "known-duplication=1000000 \u{b5}\u{1b}[31m".into();
    c.notes = vec![
        "a note that is long enough to need a second line on most terminals, and a third".into(),
    ];
    let mut list = blocks(&[(5e6, 5e6), (4.6e6, 1.2e6), (4.9e6, 4.9e6), (4.4e6, 1.201e6)]);
    list[4].audit = audit(&Evidence::default());
    for width in [40, 60, 80, 100, 200] {
        let style = Style {
            color: false,
            width,
        };
        for text in [text(&c, &list, style), trials(&c, &list).text(style)] {
            assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)));
            let longest = text.lines().max_by_key(|l| l.len()).unwrap();
            assert!(longest.len() <= width, "{width}: {longest}");
        }
    }
    let coloured = text(
        &c,
        &list,
        Style {
            color: true,
            width: 80,
        },
    );
    assert!(coloured.contains("\x1b[1m") && !coloured.contains("\x1b[31m"));
}

#[test]
fn a_summary_that_does_not_fit_its_campaign_is_no_panic() {
    let mut c = campaign(Mode::Inline);
    let verdict = summarise(&c, &blocks(&INLINE), Stopped::Precise, 0);
    c.slots.truncate(1);
    assert!(
        summary(&c, &host(), &verdict)
            .text(WIDE)
            .contains("unknown slot")
    );
}
