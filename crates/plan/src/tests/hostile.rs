//! Texts that were not written to be understood: no panic, no memory out of proportion.

use super::super::{EXAMPLE, MOST_BYTES, Plan};
use crate::mutated::{OF_TOML, edits, mutated};
use proptest::prelude::*;

const PLANS: [&str; 4] = [
    EXAMPLE,
    include_str!("../../../../plans/mtu.toml"),
    include_str!("../../../../plans/states.toml"),
    include_str!("../../../../plans/lab/nat.toml"),
];

#[test]
fn files_that_are_no_text_or_too_large() {
    let fault = &Plan::read(b"title = \"t\"\nquestion = \"\xff\"").unwrap_err()[0];
    assert_eq!(
        (fault.place.unwrap().line, fault.place.unwrap().column),
        (2, 13)
    );
    assert!(fault.message.contains("not UTF-8"));
    let large = vec![b'#'; MOST_BYTES + 1];
    assert!(
        Plan::read(&large).unwrap_err()[0]
            .message
            .contains("at most 1048576 bytes")
    );
    assert!(Plan::read(b"").is_err());
    assert!(Plan::read(b"\xef\xbb\xbf").is_err());
    let with_mark = format!("\u{feff}{EXAMPLE}");
    assert!(
        Plan::read(with_mark.as_bytes()).is_ok(),
        "a byte order mark is no fault"
    );
}

#[test]
fn deep_and_wide_texts_are_refused() {
    let deep = [
        format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("{} = 1", vec!["a"; 100_000].join(".")),
        format!("[{}]", vec!["a"; 100_000].join(".")),
        format!("a = {}1{}", "{a=".repeat(100_000), "}".repeat(100_000)),
    ];
    for text in deep {
        assert!(!Plan::read(text.as_bytes()).unwrap_err().is_empty());
    }
    let wide = [
        (0..50_000)
            .map(|n| format!("k{n} = 1\n"))
            .collect::<String>(),
        (0..50_000)
            .map(|n| format!("[variants.v{n}]\n"))
            .collect::<String>(),
        (0..20_000)
            .map(|n| format!("[variants.v{n}]\nfrom = \"v{}\"\n", n + 1))
            .collect::<String>(),
        format!("[variants.a]\nmodules = [{}]", "\"m\", ".repeat(100_000)),
        "[[expect]]\n".repeat(80_000),
        "a = \n".repeat(200_000),
    ];
    for text in wide {
        let faults = Plan::read(text.as_bytes()).unwrap_err();
        assert!(
            (1..=1000).contains(&faults.len()),
            "{} faults",
            faults.len()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Bytes of real plans are overwritten, removed and doubled.
    #[test]
    fn mutated_plans_never_panic(
        which in 0..PLANS.len(),
        edits in edits(5),
    ) {
        check(&mutated(PLANS[which], edits, OF_TOML))?;
    }

    /// Words of plans are exchanged with each other.
    #[test]
    fn shuffled_words_never_panic(
        which in 0..PLANS.len(),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let mut words: Vec<&str> = PLANS[which].split_inclusive([' ', '\n', '.']).collect();
        for (a, b) in swaps {
            let (a, b) = (a.index(words.len()), b.index(words.len()));
            words.swap(a, b);
        }
        check(words.concat().as_bytes())?;
    }
}

/// A plan is good, or its faults have places in the text.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Err(faults) = Plan::read(bytes) {
        let lines = bytes.iter().filter(|b| **b == b'\n').count() + 1;
        prop_assert!(!faults.is_empty());
        for fault in faults {
            prop_assert!(
                (1..=lines).contains(&fault.place.unwrap().line) && !fault.message.is_empty()
            );
        }
    }
    Ok(())
}
