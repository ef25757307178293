//! Finding a value in the output of a program.

/// Where in an output the value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// All of it, without white space around.
    Trimmed,
    /// All of it, to the byte.
    Whole,
    /// The number after this word: `mtu` of ifconfig.
    After(&'static str),
    /// Whether this is among the words in `<...>`: as ifconfig is given it, `tso4` or `-tso4`.
    Flag {
        /// As it is printed.
        shown: &'static [&'static str],
        /// As it is given.
        given: &'static str,
    },
    /// The first word behind the last line that begins with this and a colon: `rx-usecs` of ethtool. Behind a second name on that
    /// line if there is one after a slash: `Adaptive RX/TX`.
    Line(String),
}

impl Form {
    /// The value; `None` where it is not there.
    pub fn value(&self, output: &str) -> Option<String> {
        match self {
            Form::Trimmed => Some(output.trim()).filter(|text| !text.is_empty()).map(String::from),
            Form::Whole => Some(output.into()),
            Form::After(word) => {
                let mut words = output.split_whitespace().skip_while(|w| w != word);
                let value = words.nth(1)?;
                value.chars().all(|c| c.is_ascii_digit()).then(|| value.into())
            }
            Form::Flag { shown, given } if output.contains('<') => {
                let lists = output.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0));
                let on = lists.flat_map(|list| list.split(',')).any(|flag| shown.contains(&flag.trim()));
                Some(if on { (*given).into() } else { format!("-{given}") })
            }
            Form::Flag { .. } => None,
            Form::Line(name) => {
                let (name, second) =
                    name.split_once('/').map_or((name.as_str(), None), |(n, s)| (n, Some(s)));
                let of_line = |line: &str| -> Option<String> {
                    let rest = line.trim_start().strip_prefix(name)?.trim_start().strip_prefix(':')?;
                    let mut words = rest.split_whitespace();
                    let Some(second) = second else { return words.next().map(String::from) };
                    words.find(|word| word.strip_suffix(':') == Some(second))?;
                    words.next().map(String::from)
                };
                output.lines().rev().find_map(of_line)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_second_of_two_on_a_line() {
        let shown = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: on\nrx-usecs: 3\n";
        assert_eq!(Form::Line("Adaptive RX/TX".into()).value(shown).as_deref(), Some("on"));
        assert_eq!(Form::Line("Adaptive RX".into()).value(shown).as_deref(), Some("off"));
        assert_eq!(Form::Line("Adaptive RX/TX".into()).value("Adaptive RX: off\n"), None);
    }

    const FREEBSD: &str = "ix0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
\toptions=e407bb<RXCSUM,TXCSUM,VLAN_MTU,TSO4,LRO>
\tether 00:0c:bd:00:00:01
";

    #[test]
    fn values_of_ifconfig() {
        assert_eq!(Form::After("mtu").value(FREEBSD).as_deref(), Some("1500"));
        let flag = |shown, given| Form::Flag { shown, given }.value(FREEBSD);
        assert_eq!(flag(&["TSO4"], "tso4").as_deref(), Some("tso4"));
        assert_eq!(flag(&["TSO6"], "tso6").as_deref(), Some("-tso6"));
        assert_eq!(flag(&["UP"], "up").as_deref(), Some("up"));
        assert_eq!(Form::Flag { shown: &["LRO"], given: "lro" }.value("no such interface"), None);
    }

    #[test]
    fn values_of_ethtool() {
        let rings = "Ring parameters for eth1:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t512\nRX Mini:\tn/a\nTX:\t\t256\n";
        assert_eq!(Form::Line("RX".into()).value(rings).as_deref(), Some("512"));
        assert_eq!(Form::Line("TX".into()).value(rings).as_deref(), Some("256"));
        let features = "generic-segmentation-offload: on\ngeneric-receive-offload: off [requested on]\n";
        assert_eq!(Form::Line("generic-receive-offload".into()).value(features).as_deref(), Some("off"));
        assert_eq!(Form::Line("large-receive-offload".into()).value(features), None);
    }

    #[test]
    fn texts() {
        assert_eq!(Form::Trimmed.value(" 1\n").as_deref(), Some("1"));
        assert_eq!(Form::Trimmed.value("\n"), None);
        assert_eq!(Form::Whole.value("\n").as_deref(), Some("\n"));
        assert_eq!(Form::After("mtu").value("mtu ; reboot"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[<>:,a-z \n0-9]{0,60}") {
            for form in [Form::Trimmed, Form::After("mtu"), Form::Flag { shown: &["a"], given: "a" }, Form::Line("a".into())] {
                let _ = form.value(&text);
            }
        }
    }
}
