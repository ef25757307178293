//! How far frames go through rules: a counter in front of each rule counts the frames that reach it.

use super::Firewall;
use super::tokens::tokens;
use std::mem::take;

/// A rule and the frames that reached it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Frames.
    pub frames: u64,
    /// Whether it logs frames.
    pub logs: bool,
}

/// The listing of `nft -s list ruleset` or of `iptables-save`, with a rule in front of each that only counts. Frames meet the rules as
/// before.
pub fn with_counters(firewall: Firewall, listing: &str) -> String {
    let lines = lines(firewall, listing);
    lines
        .map(|(counter, line)| match counter {
            Some(counter) => format!("{counter}\n{line}\n"),
            None => format!("{line}\n"),
        })
        .collect()
}

/// The frames that reached each rule, in order, by a listing (`nft list ruleset`, `iptables-save -c`) of rules that have these counters.
/// `None`: the listing has other rules.
pub fn reached(firewall: Firewall, listing: &str) -> Option<Vec<Reached>> {
    let (mut texts, mut text) = (Vec::new(), String::new());
    for (begins, line) in lines(firewall, listing) {
        if begins.is_some() {
            texts.push(take(&mut text));
        }
        text += line;
    }
    texts.push(text);
    let logging = |text: &str| {
        let found = tokens(text, firewall).unwrap_or_default();
        found.iter().any(|token| token.is(&["log", "LOG", "NFLOG"]))
    };
    let pair = |pair: &[String]| {
        let counter = pair[0].trim();
        let counted = match firewall {
            Firewall::Nftables => counter.strip_prefix("counter packets ")?,
            _ => counter.strip_prefix('[')?,
        };
        Some(Reached {
            frames: counted.split([' ', ':']).next()?.parse().ok()?,
            logs: logging(pair.get(1)?),
        })
    };
    // The first text is that before the first rule.
    texts[1..].chunks(2).map(pair).collect()
}

/// The lines of a listing. Where a rule begins, the rule that counts in front of it.
fn lines(firewall: Firewall, listing: &str) -> impl Iterator<Item = (Option<String>, &str)> {
    // The open blocks of nft: whether each has rules. A rule may contain another chain: `jump {`.
    let mut blocks: Vec<bool> = Vec::new();
    let mut goes_on = false;
    listing.lines().map(move |line| {
        if firewall != Firewall::Nftables {
            let rule = line.split_once("-A ").filter(|(counters, _)| {
                counters.is_empty() || counters.starts_with('[') && counters.ends_with("] ")
            });
            let chain = rule.and_then(|(_, rule)| rule.split_whitespace().next());
            return (chain.map(|chain| format!("-A {chain}")), line);
        }
        let words = line.trim();
        let in_chain = blocks.last() == Some(&true);
        let begins = in_chain && !goes_on && is_rule(words);
        goes_on = in_chain && words.ends_with(',');
        if words.starts_with('}') {
            blocks.pop();
        } else if words.ends_with('{') {
            blocks.push(in_chain || words.starts_with("chain "));
        }
        (begins.then(|| "counter".into()), line)
    })
}

/// Whether a line in a chain's block is a rule of it, and no property of the chain.
fn is_rule(words: &str) -> bool {
    let property = ["type ", "policy ", "comment ", "flags ", "#", "}"]
        .iter()
        .any(|word| words.starts_with(word));
    !words.is_empty() && !property
}

#[cfg(test)]
mod tests {
    use super::*;

    const NFT: &str = "table inet filter {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 1.1.1.1,\n\t\t\t     1.1.1.2 }\n\t}\n\n\tchain f {\n\
                       \t\tcomment \"x\"\n\t\ttype filter hook forward priority filter; policy drop;\n\t\tip saddr { 10.0.0.1,\n\t\t\t   10.0.0.2 } accept\n\
                       \t\tip daddr 10.0.0.0/8 jump {\n\t\t\tcounter packets 0 bytes 0 accept\n\t\t}\n\t}\n}\n";

    #[test]
    fn each_rule_of_nft_has_a_counter_in_front() {
        let text = with_counters(Firewall::Nftables, NFT);
        let rules = [
            "counter\n\t\tip saddr { 10.0.0.1,\n\t\t\t   10.0.0.2 } accept\n",
            "counter\n\t\tip daddr 10.0.0.0/8 jump {\n",
            "counter\n\t\t\tcounter packets 0 bytes 0 accept\n",
        ];
        rules
            .iter()
            .for_each(|rule| assert!(text.contains(rule), "{text}"));
        assert_eq!(text.matches("counter\n").count(), 3);
        assert_eq!(text.replace("counter\n", ""), NFT);
        let mut frames = 0;
        let listed = text.lines().map(|line| match line {
            "counter" => {
                frames += 5;
                format!("\t\tcounter packets {frames} bytes 9\n")
            }
            line => format!("{line}\n"),
        });
        let listed: String = listed.collect();
        let frames = |rules: Vec<Reached>| rules.iter().map(|of| of.frames).collect();
        let found = reached(Firewall::Nftables, &listed).map(frames);
        assert_eq!(found, Some(vec![5, 10, 15]));
        assert_eq!(reached(Firewall::Nftables, NFT), None);
        assert_eq!(reached(Firewall::Nftables, ""), Some(vec![]));
    }

    #[test]
    fn each_rule_of_iptables_has_a_counter_in_front() {
        let saved = "*filter\n:FORWARD DROP [0:0]\n:user - [0:0]\n-A FORWARD -j user\n-A user -m comment --comment \"a -A b\" -j ACCEPT\nCOMMIT\n";
        let text = with_counters(Firewall::Iptables, saved);
        assert_eq!(
            text,
            "*filter\n:FORWARD DROP [0:0]\n:user - [0:0]\n-A FORWARD\n-A FORWARD -j user\n-A user\n\
             -A user -m comment --comment \"a -A b\" -j ACCEPT\nCOMMIT\n"
        );
        let listed = text.replace("-A FORWARD\n", "[7:420] -A FORWARD\n");
        let listed = listed.replace("-A user\n", "[6:360] -A user\n");
        let rule = |frames, logs| Reached { frames, logs };
        let found = reached(Firewall::Iptables, &listed);
        assert_eq!(found, Some(vec![rule(7, false), rule(6, false)]));
        assert_eq!(reached(Firewall::Iptables, saved), None);
    }

    #[test]
    fn rules_that_log_are_known() {
        let of = |rule: &str| {
            let text = format!(
                "table inet t {{\n\tchain f {{\n\t\tcounter packets 3 bytes 9\n\t\t{rule}\n\t}}\n}}\n"
            );
            reached(Firewall::Nftables, &text).unwrap()[0].logs
        };
        assert!(of("ct state new log prefix \"a\" accept"));
        assert!(of("ip saddr { 10.0.0.1,\n\t\t\t10.0.0.2 } log"));
        assert!(!of("accept comment \"no log\""));
        let saved = "*filter\n[3:9] -A FORWARD\n[0:0] -A FORWARD -j NFLOG\n";
        assert!(reached(Firewall::Iptables, saved).unwrap()[0].logs);
    }
}
