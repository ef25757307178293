//! Texts and folders that were not written to be understood: no panic, bounded results, and plans without faults.

use super::*;
use crate::mutated::{edits, mutated};
use proptest::prelude::*;

/// Every import has plans without faults, and reports the settings that its lab lacks.
fn check(source: &Source) -> Result<(), TestCaseError> {
    match import(source) {
        Err(faults) => prop_assert!(!faults.is_empty()),
        Ok(imported) => {
            for plan in &imported.plans {
                prop_assert!(Plan::read(plan.text.as_bytes()).is_ok());
            }
            let lacking = Lab::read(imported.lab.as_bytes()).err().unwrap_or_default();
            prop_assert_eq!(&lacking, &imported.lacking);
            // Only missing settings and duplicates: no value is of a wrong form.
            for fault in lacking {
                let fine = [
                    "which interface",
                    "already",
                    "in no network",
                    "Ethernet address",
                    "needs",
                    "without",
                ];
                prop_assert!(
                    fine.iter().any(|part| fault.message.contains(part)),
                    "{fault:?}"
                );
            }
            prop_assert!(
                imported.notes.carried.len() <= 1000 && imported.notes.not_carried.len() <= 1000
            );
        }
    }
    Ok(())
}

/// Bytes that mean something to a shell.
const OF_SHELLS: &[u8] = b"\"'$`(){}=;&|<>#\\\n 01.:-[]";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_configurations_never_panic(config in edits(7), rc in edits(7), preset in edits(7)) {
        let mut source = source("");
        source.config = mutated(TWO, config, OF_SHELLS);
        let rc = File { path: "a/etc/rc.conf".into(), bytes: mutated(RC_CONF, rc, OF_SHELLS), executable: true };
        let preset_text = "AF=\"6\"\nPKT_SIZE=62\nSENDER_LAB_NET=\"[2001:2::1]-[2001:2::14]\"\n";
        let preset = File { path: "six".into(), bytes: mutated(preset_text, preset, OF_SHELLS), executable: false };
        source.sets = Some(Folder { path: "c".into(), files: vec![rc], unread: Vec::new() });
        source.presets = Some(Folder { path: "p".into(), files: vec![preset], unread: Vec::new() });
        check(&source)?;
    }

    #[test]
    fn any_text_is_taken_apart(text in "[A-C=${}()\"'`\\\\ \n;:#&|<>+\\-a-c]{0,80}") {
        crate::benchlab::values::Values::default().read(&text, "t");
    }

    #[test]
    fn any_folder_is_taken(
        files in prop::collection::btree_map(
            "(dut/|refendpoint/|a/|b/)?(etc/|boot/)?(rc.conf|sysctl.conf|loader.conf|pf.conf|x{0,3}|\\PC)",
            "[a-z.=\"{}0-9#\n \\x00']{0,60}",
            0..6,
        ),
        unread in prop::collection::vec("(a|b)/[a-z]{1,4}", 0..2),
    ) {
        let mut source = source(TWO);
        let file = |(path, text): (String, String)| File { path, bytes: text.into_bytes(), executable: false };
        let files = files.into_iter().map(file).collect();
        let unread = unread.into_iter().map(|path| (path, "a link".to_string())).collect();
        source.sets = Some(Folder { path: "c".into(), files, unread });
        check(&source)?;
    }
}

#[test]
fn every_prefix_of_a_configuration_is_taken_or_refused() {
    for end in 0..=TWO.len() {
        let mut source = source(&TWO[..end]);
        source.sets = folder(
            "c",
            &[("a/etc/rc.conf", &RC_CONF[..RC_CONF.len() * end / TWO.len()])],
        );
        check(&source).unwrap();
    }
}

#[test]
fn sets_that_are_too_much_are_left_out_and_told() {
    let mut source = source(TWO);
    let large = "x\n".repeat(300_000);
    source.sets = folder(
        "c",
        &[
            ("a/etc/x", &large),
            ("b/etc/x", &large),
            ("forwarding/etc/x", "x"),
        ],
    );
    let imported = made(&source);
    let variants: Vec<String> = campaign(&imported.plans[0])
        .cells
        .iter()
        .map(|c| c.variant.clone())
        .collect();
    assert_eq!(variants, ["a", "forwarding"]);
    says(
        &left(&imported),
        "c/b:0 the set is left out: a plan has 1048576 bytes at most",
    );

    let many: Vec<(String, &str)> = (0..1000).map(|n| (format!("s{n}/etc/x"), "x")).collect();
    let many: Vec<(&str, &str)> = many
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    source.sets = folder("c", &many);
    says(&left(&made(&source)), "the set is left out: more than 500");

    source.sets = folder(
        "c",
        &[("a/etc/x", "x"), ("b/etc/x", "x"), ("b/etc/y", "\u{0}")],
    );
    source
        .sets
        .as_mut()
        .unwrap()
        .unread
        .push(("a/etc/z".into(), "a link: links are not followed".into()));
    let imported = made(&source);
    let notes = left(&imported);
    says(&notes, "c/a/etc/z:0 a link");
    says(&notes, "c/a:0 the set is left out: it would lack a/etc/z");
    assert_eq!(campaign(&imported.plans[0]).lanes[0].variants, ["b"]);
}

#[test]
fn takes_minutes_many_presets_and_many_notes_are_bounded() {
    let mut source = source(&format!("{TWO}OTHER1=1\n"));
    // Each is a plan of its own, and each plan has the set.
    let preset = |n: u64| {
        format!(
            "PKT_SIZE={}\nSENDER_LAB_NET=198.18.10.1-198.18.10.{}\n",
            60 + n,
            1 + n
        )
    };
    let presets: Vec<(String, String)> = (0..200).map(|n| (format!("p{n}"), preset(n))).collect();
    let presets: Vec<(&str, &str)> = presets
        .iter()
        .map(|(n, t)| (n.as_str(), t.as_str()))
        .collect();
    source.presets = folder("p", &presets);
    source.sets = folder("c", &[("a/etc/x", &"x\n".repeat(400_000))]);
    let imported = made(&source);
    let bytes: usize = imported.plans.iter().map(|p| p.text.len()).sum();
    assert!(
        (2..30).contains(&imported.plans.len()) && bytes <= 16 << 20,
        "{bytes}"
    );
    says(
        &left(&imported),
        "the preset is left out: all plans would have more than",
    );

    source.sets = None;
    source.presets = folder("p", &[]);
    (0..600).for_each(|n| {
        source.presets.as_mut().unwrap().files.push(File {
            path: format!("p{n:03}"),
            bytes: b"PKT_SIZE=60".to_vec(),
            executable: false,
        })
    });
    says(
        &left(&made(&source)),
        "the preset is left out: more than 500",
    );

    let many: String = (0..2000)
        .map(|n| format!("OTHER{n}=\"{}\"\n", "x".repeat(50)))
        .collect();
    let imported = made(&self::source(&format!("{TWO}{many}")));
    let plan = &imported.plans[0].text;
    assert!(plan.len() < 100_000 && imported.notes.more > 900);
    let last = plan.lines().last().unwrap();
    assert!(
        last.starts_with("#   and ") && last.ends_with(" more"),
        "{last}"
    );
}
