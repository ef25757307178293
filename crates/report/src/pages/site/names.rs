//! Names of a site's files: lower-case letters, digits and dashes, so that no name of an archive leads elsewhere or breaks an
//! address, and none is another's on disks that do not tell upper case from lower.

use crate::prelude::*;

/// Characters of a name, without its number.
const LONGEST: usize = 80;

/// The names that are taken, with how often each was asked for.
#[derive(Debug, Default)]
pub struct Names(BTreeMap<String, usize>);

impl Names {
    /// A file of this folder that says as much of `text` as a name can: `sets/xeon-e5-2650-8cores-firewalls.html`.
    pub fn take(&mut self, folder: &str, text: &str) -> String {
        let mut slug = String::new();
        for c in text.chars() {
            match c.to_ascii_lowercase() {
                c if c.is_ascii_alphanumeric() => slug.push(c),
                _ if slug.is_empty() || slug.ends_with('-') => {}
                _ => slug.push('-'),
            }
            if slug.len() >= LONGEST {
                break;
            }
        }
        let slug = slug.trim_end_matches('-');
        let base = format!(
            "{folder}/{}",
            if slug.is_empty() { "unnamed" } else { slug }
        );
        let mut name = base.clone();
        while let Some(times) = self.0.get_mut(&name) {
            *times += 1;
            let number = *times;
            name = format!("{base}-{number}");
            if let Some(times) = self.0.get_mut(&base) {
                *times = number;
            }
        }
        self.0.insert(name.clone(), 1);
        name + ".html"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_become_plain_and_unique_ones() {
        let mut names = Names::default();
        let mut taken = |text: &str| names.take("sets", text);
        assert_eq!(
            taken("Xeon_E5-2650 firewalls"),
            "sets/xeon-e5-2650-firewalls.html"
        );
        assert_eq!(
            taken("XEON e5 2650 Firewalls"),
            "sets/xeon-e5-2650-firewalls-2.html"
        );
        assert_eq!(
            taken("xeon-e5-2650-firewalls-2"),
            "sets/xeon-e5-2650-firewalls-2-2.html"
        );
        assert_eq!(
            taken("xeon-e5-2650-firewalls"),
            "sets/xeon-e5-2650-firewalls-3.html"
        );
        assert_eq!(taken("../../etc/passwd"), "sets/etc-passwd.html");
        assert_eq!(taken("</script>\n\"\u{0}"), "sets/script.html");
        assert_eq!(taken("\u{4e2d}\u{6587}"), "sets/unnamed.html");
        assert_eq!(taken(""), "sets/unnamed-2.html");
        assert!(taken(&"long ".repeat(10_000)).len() < 100);
        let many: std::collections::BTreeSet<String> = (0..10_000).map(|_| taken("same")).collect();
        assert_eq!(many.len(), 10_000);
    }
}
