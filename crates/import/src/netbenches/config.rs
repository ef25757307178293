//! Configuration files of a DUT: shell assignments, `key=value`, rule sets. Read, never executed.

use super::Setting;
use super::shell::{Item, items};

/// Content of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// Shell assignments: rc.conf, loader.conf.
    Shell,
    /// `key=value` lines: sysctl.conf.
    Sysctl,
    /// A rule or command a line: pf.conf, ipfw.rules, ipf.rules.
    Rules,
}

/// More lines of one file than this are counted, not kept: rule sets of thousands of lines are measured, too.
pub const MOST_SETTINGS: usize = 200;
/// Longer values are cut.
const LONGEST: usize = 1000;

/// The grammar of a file by its name; `None` for files that describe no variant (keys, certificates, scripts of the lab).
pub fn grammar(name: &str) -> Option<Grammar> {
    let rules = ["pf.conf", "ipfw.conf", "ipf.conf", "ipnat.conf"];
    if rules.contains(&name) || (name.ends_with(".rules") && !name.starts_with('.')) {
        return Some(Grammar::Rules);
    }
    if name.starts_with("sysctl.conf") {
        return Some(Grammar::Sysctl);
    }
    (name.starts_with("rc.conf") || name.starts_with("loader.conf")).then_some(Grammar::Shell)
}

/// Reads a file's settings, in their order.
pub fn settings(grammar: Grammar, bytes: &[u8]) -> Vec<Setting> {
    let text = String::from_utf8_lossy(bytes);
    let setting = |name: &str, value: &str| Setting { name: shortened(name), value: shortened(value) };
    let mut all: Vec<Setting> = match grammar {
        Grammar::Shell => items(&text)
            .into_iter()
            .map(|item| match item {
                Item::Assignment { name, value, .. } => setting(&name, &value),
                Item::Other(line) => setting("", &line),
            })
            .collect(),
        Grammar::Sysctl => lines(&text)
            .map(|line| match line.split_once('=') {
                Some((key, value)) => setting(key.trim(), value.trim().trim_matches('"')),
                None => setting("", line),
            })
            .collect(),
        Grammar::Rules => lines(&text).map(|line| setting("", line)).collect(),
    };
    let more = all.len().saturating_sub(MOST_SETTINGS);
    if more > 0 {
        all.truncate(MOST_SETTINGS);
        all.push(Setting { name: String::new(), value: format!("... and {more} lines more") });
    }
    all
}

/// Lines without comments and blanks around them, the empty ones left out.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|l| l.split('#').next().unwrap_or("").trim()).filter(|l| !l.is_empty())
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Vec<(String, String)> {
        let settings = settings(grammar(name).unwrap(), text.as_bytes());
        settings.into_iter().map(|s| (s.name, s.value)).collect()
    }

    #[test]
    fn grammars_by_name() {
        for (name, found) in [
            ("rc.conf", Some(Grammar::Shell)),
            ("rc.conf.misc", Some(Grammar::Shell)),
            ("loader.conf.local", Some(Grammar::Shell)),
            ("sysctl.conf", Some(Grammar::Sysctl)),
            ("pf.conf", Some(Grammar::Rules)),
            ("ipfw.rules", Some(Grammar::Rules)),
            ("ta.key", None),
            ("master.passwd", None),
        ] {
            assert_eq!(grammar(name), found, "{name}");
        }
    }

    #[test]
    fn each_grammar() {
        assert_eq!(read("rc.conf", "# x\nharvest_mask=\"351\"\n"), [("harvest_mask".into(), "351".into())]);
        assert_eq!(
            read("sysctl.conf", "\n# x\ndev.igb.0.fc=0 # no pause\n"),
            [("dev.igb.0.fc".into(), "0".into())]
        );
        let rules = read("ipfw.rules", "#!/bin/sh\nfwcmd=\"/sbin/ipfw\"\nadd 100 allow ip from any to any\n");
        assert_eq!(rules[1], (String::new(), "add 100 allow ip from any to any".into()));
    }

    #[test]
    fn long_rule_sets_are_counted() {
        let rules = read("ipfw.rules", &"add allow ip from any to any\n".repeat(1000));
        assert_eq!(
            (rules.len(), rules[MOST_SETTINGS].1.as_str()),
            (MOST_SETTINGS + 1, "... and 800 lines more")
        );
    }
}
