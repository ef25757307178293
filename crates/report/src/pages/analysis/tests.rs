//! An analysis as a person sees it.

use super::*;
use crate::format::Style;
use linerate_stats::analysis::{Settings, Words, analyse};

const FORWARDING: [f64; 8] = [
    7.01e6, 7.05e6, 6.98e6, 7.02e6, 7.04e6, 6.99e6, 7.03e6, 7.00e6,
];
const STATEFUL: [f64; 8] = [
    4.85e6, 4.91e6, 4.80e6, 5.02e6, 4.88e6, 4.86e6, 4.93e6, 4.84e6,
];
const WITH_A_SLIP: [f64; 8] = [
    7.00e6, 7.06e6, 6.99e6, 7.01e6, 4.04e6, 7.02e6, 7.05e6, 6.97e6,
];

fn rates() -> Settings {
    Settings {
        words: Words::RATES,
        ..Settings::default()
    }
}

fn rendered(sets: &[(&str, &[f64])], settings: &Settings, width: usize) -> String {
    analysis(&analyse(sets, settings)).text(Style {
        color: false,
        width,
    })
}

#[test]
fn verdict_then_figures_then_warnings() {
    let sets: [(&str, &[f64]); 3] = [
        ("forwarding", &FORWARDING),
        ("stateful", &STATEFUL),
        ("slip", &WITH_A_SLIP),
    ];
    let text = rendered(&sets, &rates(), 100);
    assert_eq!(text, include_str!("three_sets.txt"));
}

#[test]
fn one_set_has_no_comparison() {
    let text = rendered(&[("forwarding", &FORWARDING)], &Settings::default(), 100);
    assert_eq!(text, include_str!("one_set.txt"));
}

#[test]
fn too_few_to_show_anything_is_said_first() {
    let text = rendered(
        &[("a", &FORWARDING[..3]), ("b", &STATEFUL[..3])],
        &rates(),
        100,
    );
    let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = "3 and 3 trials are too few to show a difference between a and b; so far b is 31 % slower than a \
                 (p 3e-6 by Welch's t test, which takes the values for normal).";
    assert!(flowing.starts_with(start), "{text}");
    assert!(
        flowing.contains("! b against a: 3 and 3 trials cannot show a difference by their ranks"),
        "{text}"
    );
    assert!(
        flowing.contains("the smallest p they can reach is 0.1"),
        "{text}"
    );
}

#[test]
fn numbers_of_which_nothing_is_known_are_higher_or_lower() {
    let sets: [(&str, &[f64]); 2] = [
        ("a", &[-4.0, -3.0, -2.0, -1.0, 0.5, 1.0]),
        ("b", &[6.0, 7.5, 8.0, 9.0, 9.5, 10.0]),
    ];
    let text = rendered(&sets, &Settings::default(), 100);
    assert!(
        text.starts_with(
            "b is 650 % higher than a, 95 % interval 467..800 %, 6 and 6 points, p 0.0022."
        ),
        "{text}"
    );
    let zeros: [(&str, &[f64]); 2] = [
        ("a", &[-1.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
        ("b", &[6.0, 7.5, 8.0, 9.0, 9.5, 10.0]),
    ];
    let text = rendered(&zeros, &Settings::default(), 100);
    assert!(
        text.starts_with("b is 8.5 higher than a, 95 % interval 6.5..10.0, 6 and 6 points"),
        "{text}"
    );
    let twice: Vec<f64> = FORWARDING.iter().map(|v| v * 2.5).collect();
    let text = rendered(&[("a", &FORWARDING), ("b", &twice)], &rates(), 100);
    assert!(
        text.starts_with(
            "b is 2.5 times as fast as a, 95 % interval 2.49..2.51 times, 8 and 8 trials"
        ),
        "{text}"
    );
}

#[test]
fn no_line_is_wider_than_the_page_whatever_the_values() {
    let odd = [
        f64::INFINITY,
        -1e308,
        1e308,
        5e-324,
        0.0,
        12_345.678,
        -0.0,
        f64::MAX,
    ];
    let long = "a-very-long-path-to-a-file-of-numbers-that-goes-on-and-on-and-on-for-more-than-a-line-of-text.pps";
    let none: [f64; 0] = [];
    for width in [60, 80, 100, 120] {
        for words in [Words::RATES, Words::NUMBERS] {
            let settings = Settings {
                words,
                show_percent: Some(0.01),
                ..Settings::default()
            };
            let sets: [(&str, &[f64]); 5] = [
                ("x", &FORWARDING),
                (long, &odd),
                ("none", &none),
                ("one", &[1.0]),
                ("tiny\u{1b}[2J", &[1e-9; 7]),
            ];
            let text = rendered(&sets, &settings, width);
            assert!(
                text.bytes()
                    .all(|b| b == b'\n' || (b' '..=b'~').contains(&b)),
                "{text}"
            );
            let widest = text.lines().map(str::len).max().unwrap();
            assert!(widest <= width, "{widest} of {width}:\n{text}");
            assert!(!text.contains("NaN"), "{text}");
        }
    }
}
