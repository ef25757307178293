//! Rules are complete, and their texts are filled.

use super::*;
use linerate_plan::sysctl::is_asked;

/// The files of the rules, whose functions give values their names.
const FILES: [&str; 9] = [
    include_str!("cpus.rs"),
    include_str!("filters.rs"),
    include_str!("hooks.rs"),
    include_str!("limits.rs"),
    include_str!("links.rs"),
    include_str!("path.rs"),
    include_str!("queues.rs"),
    include_str!("tracking.rs"),
    include_str!("../extra.rs"),
];

/// All rules, and those of comments.
fn every() -> impl Iterator<Item = &'static Rule> {
    all().chain(crate::extra::rules())
}

fn texts(rule: &Rule) -> Vec<&str> {
    let texts = rule.changes.iter().flatten().copied();
    texts
        .chain([rule.says, rule.mechanism, rule.gain])
        .collect()
}

fn tries(rule: &Rule) -> impl Iterator<Item = Try> {
    rule.tries
        .iter()
        .map(|(_, tried)| *tried)
        .chain([rule.otherwise])
}

/// Words in braces, without the interfaces that a plan's commands name.
fn names(text: &str) -> Vec<&str> {
    let words = text
        .split('{')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('}')?.0));
    words
        .filter(|word| {
            word.bytes().all(|b| b.is_ascii_lowercase()) && !["in", "out"].contains(word)
        })
        .collect()
}

#[test]
fn rules_are_complete_and_each_has_its_own_cause() {
    let mut causes: Vec<&str> = every().map(|rule| rule.cause).collect();
    let number = causes.len();
    causes.sort_unstable();
    causes.dedup();
    assert_eq!((causes.len(), number), (59, 59));
    for rule in every() {
        assert!(
            texts(rule).iter().all(|text| !text.is_empty()),
            "{}",
            rule.cause
        );
        assert!(
            rule.says.ends_with(['.', '}']) && rule.mechanism.ends_with('.'),
            "{}",
            rule.cause
        );
        assert!(
            !rule.changes.is_empty() || rule.cause == "frames-dropped",
            "{}",
            rule.cause
        );
    }
    for rule in all() {
        if let Look::Cost(functions, least, _) = rule.look {
            let mut unique = functions.to_vec();
            unique.sort_unstable();
            unique.dedup();
            assert!(
                unique.len() == functions.len() && !unique.is_empty() && least > 0.0,
                "{}",
                rule.cause
            );
        }
    }
}

#[test]
fn every_value_that_a_text_names_is_found_by_a_function() {
    let files = FILES.map(|file| file.split_whitespace().collect::<String>());
    let known = |name: &str| {
        // However the text is broken into lines.
        let given =
            ["with(\"NAME\"", ",\"NAME\")", ",\"NAME\",)"].map(|form| form.replace("NAME", name));
        let of_all =
            COMMON.iter().any(|(common, _)| *common == name) || ["share", "cost"].contains(&name);
        of_all
            || files
                .iter()
                .any(|file| given.iter().any(|given| file.contains(given)))
    };
    for rule in every() {
        let keys = tries(rule).filter_map(|tried| match tried {
            Try::Keys(text) | Try::InLab(text) => Some(text),
            Try::Not(_) => None,
        });
        let conditions = rule.tries.iter().filter_map(|(on, _)| {
            if let On::With(name) = on {
                Some(*name)
            } else {
                None
            }
        });
        let named = texts(rule)
            .into_iter()
            .chain(keys)
            .flat_map(names)
            .chain(conditions);
        let unknown: Vec<&str> = named.filter(|name| !known(name)).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", rule.cause);
    }
}

#[test]
fn experiments_are_keys_or_have_a_reason() {
    for rule in every() {
        for tried in tries(rule) {
            match tried {
                Try::Keys(keys) => {
                    let keys = names(keys)
                        .into_iter()
                        .fold(keys.to_string(), |keys, name| {
                            keys.replace(&format!("{{{name}}}"), "1")
                        });
                    let read: Result<Value, _> = serde_json::from_str(&keys);
                    assert!(
                        read.is_ok_and(|keys| keys.is_object()),
                        "{}: {keys}",
                        rule.cause
                    );
                }
                Try::InLab(text) | Try::Not(text) => {
                    assert!(!text.is_empty(), "{}", rule.cause)
                }
            }
        }
    }
}

#[test]
fn settings_that_a_rule_names_are_asked_for() {
    let roots = ["net", "kern", "kernel", "hw", "machdep", "vm"];
    let part = |c: char| !(c.is_ascii_alphanumeric() || "._-{}".contains(c));
    let mut number = 0;
    for rule in every() {
        let keys = tries(rule).filter_map(|tried| match tried {
            Try::Keys(keys) => Some(keys),
            _ => None,
        });
        let texts = rule.changes.iter().flatten().copied().chain(keys);
        let words = texts.flat_map(|text| text.split(part));
        let settings = words.filter(|word| {
            let root = word.split_once('.').map(|(root, _)| root);
            root.is_some_and(|root| roots.contains(&root))
        });
        for name in settings.map(|name| name.trim_end_matches('.')) {
            number += 1;
            let is_known = [System::Linux, System::FreeBsd, System::OpenBsd]
                .into_iter()
                .any(|system| is_asked(system, name));
            assert!(
                is_known || name.starts_with("hw.IF."),
                "{}: {name} is no setting of plan/src/sysctl.rs",
                rule.cause
            );
        }
    }
    assert!(number > 40, "{number}");
}

#[test]
fn devices_of_the_lab_are_named_as_in_plans() {
    let named = [
        "in0",
        "out12",
        "card-in3",
        "card-out0",
        "ifb0",
        "in",
        "inside",
        "card-x1",
    ];
    let named = named.map(in_lab);
    assert_eq!(
        named,
        [
            "{in}",
            "{out}",
            "card-{in}",
            "card-{out}",
            "ifb0",
            "in",
            "inside",
            "card-x1"
        ]
    );
}

#[test]
fn values_take_their_place_once() {
    let found = Found::observed(0.5, [])
        .with("card", "a{share}\"")
        .when(false, "other");
    assert_eq!(
        found.text("{card}: {share}, {other} {in} {paper} 1 {"),
        format!("a{{share}}\": 50 %, {{other}} {{in}} {} 1 {{", COMMON[0].1)
    );
}
