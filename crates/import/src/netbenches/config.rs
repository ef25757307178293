//! Configuration files of a DUT: shell assignments, `key=value`, rule sets, read and never executed; and the configurations of a
//! topic (`<topic>/configs/<name>/etc/rc.conf`), by which variants are described.

use super::shell::items;
use super::{Setting, layout};
use crate::shortened;
use std::collections::BTreeMap;

/// Content of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// Assignments: rc.conf, loader.conf, sysctl.conf.
    Assignments,
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
    let assignments = ["rc.conf", "loader.conf", "sysctl.conf"];
    assignments
        .iter()
        .any(|begin| name.starts_with(begin))
        .then_some(Grammar::Assignments)
}

/// Reads a file's settings, in their order.
pub fn settings(grammar: Grammar, bytes: &[u8]) -> Vec<Setting> {
    let text = String::from_utf8_lossy(bytes);
    let setting = |name: &str, value: &str| Setting {
        name: shortened(name, LONGEST),
        value: shortened(value, LONGEST),
    };
    let mut all: Vec<Setting> = match grammar {
        Grammar::Assignments => items(&text)
            .iter()
            .map(|item| setting(&item.name, &item.value))
            .collect(),
        Grammar::Rules => lines(&text).map(|line| setting("", line)).collect(),
    };
    let more = all.len().saturating_sub(MOST_SETTINGS);
    if more > 0 {
        all.truncate(MOST_SETTINGS);
        all.push(Setting {
            name: String::new(),
            value: format!("... and {more} lines more"),
        });
    }
    all
}

/// Lines without comments and blanks around them, the empty ones left out.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|l| l.split('#').next().unwrap_or("").trim())
        .filter(|l| !l.is_empty())
}

/// File -> its settings.
pub type Description = BTreeMap<String, Vec<Setting>>;

/// All configurations that were read so far.
#[derive(Debug, Clone, Default)]
pub struct Configs {
    /// (topic's folder, folder of configurations, configuration) -> description.
    all: BTreeMap<(String, String, String), Description>,
}

impl Configs {
    /// Takes a file below a folder of configurations; `false` for files that describe no variant.
    pub fn file(&mut self, path: &str, bytes: &[u8]) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        let Some(at) = parts.iter().position(|p| layout::is_configs(p)) else {
            return false;
        };
        let Some(grammar) = parts.last().and_then(|name| grammar(name)) else {
            return false;
        };
        let Some((config, file)) = parts[at + 1..].split_first() else {
            return false;
        };
        // A single file may be the whole configuration.
        let file = if file.is_empty() {
            (*config).to_string()
        } else {
            file.join("/")
        };
        let key = (
            parts[..at].join("/"),
            parts[at].to_string(),
            (*config).to_string(),
        );
        self.all
            .entry(key)
            .or_default()
            .insert(file, settings(grammar, bytes));
        true
    }

    /// Whether a file's content would be used.
    pub fn wants(path: &str) -> bool {
        grammar(layout::file_name(path)).is_some()
    }

    /// The configuration of one of these names that belongs to results at `results` (`<topic>/results/<label>`). Plain
    /// `configs` comes before its variants.
    pub fn find(&self, results: &str, names: &[&str]) -> Option<&Description> {
        let parts: Vec<&str> = results.split('/').collect();
        let at = parts
            .iter()
            .position(|p| matches!(*p, "results" | "result"))?;
        let topic = parts[..at].join("/");
        let first = (topic.clone(), String::new(), String::new());
        let of_topic = || {
            self.all
                .range(first.clone()..)
                .take_while(|((t, _, _), _)| *t == topic)
        };
        names
            .iter()
            .find_map(|name| of_topic().find(|((_, _, config), _)| config == name))
            .map(|(_, d)| d)
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
            ("rc.conf", Some(Grammar::Assignments)),
            ("rc.conf.misc", Some(Grammar::Assignments)),
            ("loader.conf.local", Some(Grammar::Assignments)),
            ("sysctl.conf", Some(Grammar::Assignments)),
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
        assert_eq!(
            read("rc.conf", "# x\nharvest_mask=\"351\"\n"),
            [("harvest_mask".into(), "351".into())]
        );
        assert_eq!(
            read("sysctl.conf", "\n# x\ndev.igb.0.fc=0 # no pause\n"),
            [("dev.igb.0.fc".into(), "0".into())]
        );
        let rules = read(
            "ipfw.rules",
            "#!/bin/sh\nfwcmd=\"/sbin/ipfw\"\nadd 100 allow ip from any to any\n",
        );
        assert_eq!(
            rules[1],
            (String::new(), "add 100 allow ip from any to any".into())
        );
    }

    #[test]
    fn long_rule_sets_are_counted() {
        let rules = read("ipfw.rules", &"add allow ip from any to any\n".repeat(1000));
        assert_eq!(
            (rules.len(), rules[MOST_SETTINGS].1.as_str()),
            (MOST_SETTINGS + 1, "... and 800 lines more")
        );
    }

    #[test]
    fn configurations_are_found_by_topic_and_name() {
        let mut configs = Configs::default();
        assert!(configs.file("c/n/t/configs/351/etc/rc.conf", b"harvest_mask=\"351\"\n"));
        assert!(configs.file("c/n/t/configs.dco/351/etc/rc.conf", b"a=1\n"));
        assert!(configs.file("c/n/t/configs.dco/null/ref/etc/rc.conf", b"b=1\n"));
        assert!(!configs.file("c/n/t/configs/351/etc/openvpn/ta.key", b"secret"));
        let found = configs
            .find("c/n/t/results/fbsd11.1", &["nothing", "351"])
            .unwrap();
        assert_eq!(found["etc/rc.conf"][0].name, "harvest_mask");
        assert_eq!(
            configs.find("c/n/t/result/x", &["null"]).unwrap()["ref/etc/rc.conf"][0].name,
            "b"
        );
        assert!(configs.find("c/n/other/results/x", &["351"]).is_none());
        assert!(configs.find("x", &["351"]).is_none());
    }
}
