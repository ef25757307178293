//! The configurations of a topic (`<topic>/configs/<name>/etc/rc.conf`), by which variants are described.

use super::Setting;
use super::config::{grammar, settings};
use super::layout;
use std::collections::BTreeMap;

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
        let Some(at) = parts.iter().position(|p| layout::is_configs(p)) else { return false };
        let Some(grammar) = parts.last().and_then(|name| grammar(name)) else { return false };
        let Some((config, file)) = parts[at + 1..].split_first() else { return false };
        // A single file may be the whole configuration.
        let file = if file.is_empty() { (*config).to_string() } else { file.join("/") };
        let key = (parts[..at].join("/"), parts[at].to_string(), (*config).to_string());
        self.all.entry(key).or_default().insert(file, settings(grammar, bytes));
        true
    }

    /// Whether a file's content would be used.
    pub fn wants(path: &str) -> bool {
        path.rsplit('/').next().is_some_and(|name| grammar(name).is_some())
    }

    /// The configuration of one of these names that belongs to results at `results` (`<topic>/results/<label>`). Plain
    /// `configs` comes before its variants.
    pub fn find(&self, results: &str, names: &[&str]) -> Option<&Description> {
        let parts: Vec<&str> = results.split('/').collect();
        let at = parts.iter().position(|p| matches!(*p, "results" | "result"))?;
        let topic = parts[..at].join("/");
        let first = (topic.clone(), String::new(), String::new());
        let of_topic = || self.all.range(first.clone()..).take_while(|((t, _, _), _)| *t == topic);
        names.iter().find_map(|name| of_topic().find(|((_, _, config), _)| config == name)).map(|(_, d)| d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_found_by_topic_and_name() {
        let mut configs = Configs::default();
        assert!(configs.file("c/n/t/configs/351/etc/rc.conf", b"harvest_mask=\"351\"\n"));
        assert!(configs.file("c/n/t/configs.dco/351/etc/rc.conf", b"a=1\n"));
        assert!(configs.file("c/n/t/configs.dco/null/ref/etc/rc.conf", b"b=1\n"));
        assert!(!configs.file("c/n/t/configs/351/etc/openvpn/ta.key", b"secret"));
        let found = configs.find("c/n/t/results/fbsd11.1", &["nothing", "351"]).unwrap();
        assert_eq!(found["etc/rc.conf"][0].name, "harvest_mask");
        assert_eq!(configs.find("c/n/t/result/x", &["null"]).unwrap()["ref/etc/rc.conf"][0].name, "b");
        assert!(configs.find("c/n/other/results/x", &["351"]).is_none());
        assert!(configs.find("x", &["351"]).is_none());
    }
}
