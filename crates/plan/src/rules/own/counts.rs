//! Counters of a rule file's rules, as the firewall's tool lists them.

use super::Firewall;
use linerate_measure::record::RuleCount;

/// The counters in a listing of `nft list ruleset` or `iptables-save -c`, in its order.
pub fn counts(firewall: Firewall, listing: &str) -> Vec<RuleCount> {
    if firewall == Firewall::Nftables { nftables(listing) } else { iptables(listing) }
}

/// Growth of the rules' counters between two listings, without rules that did not count.
pub fn grown(before: &[RuleCount], after: &[RuleCount]) -> Vec<RuleCount> {
    if before.len() != after.len() {
        return Vec::new();
    }
    let since = |(before, after): (&RuleCount, &RuleCount)| RuleCount {
        rule: after.rule.clone(),
        frames: after.frames.saturating_sub(before.frames),
    };
    before.iter().zip(after).map(since).filter(|count| count.frames > 0).collect()
}

fn nftables(listing: &str) -> Vec<RuleCount> {
    let mut counts = Vec::new();
    let mut blocks: Vec<&str> = Vec::new();
    let mut rule = String::new();
    for line in listing.lines().map(str::trim) {
        match line {
            "}" => _ = blocks.pop(),
            header if header.ends_with('{') => blocks.push(header.trim_end_matches(['{', ' '])),
            line => {
                // A long list of addresses goes on in the next line.
                rule.push_str(line);
                if line.ends_with(',') {
                    rule.push(' ');
                    continue;
                }
                counts.extend(of_nft_rule(&blocks, &rule));
                rule.clear();
            }
        }
    }
    counts
}

fn of_nft_rule(blocks: &[&str], rule: &str) -> Option<RuleCount> {
    let table = blocks.first()?.strip_prefix("table ")?;
    let block = blocks.get(1)?;
    let (before, counted) = match block.strip_prefix("chain ") {
        Some(_) => rule.split_once("counter packets ")?,
        None => ("", rule.strip_prefix("packets ").filter(|_| block.starts_with("counter "))?),
    };
    let mut words = counted.splitn(4, ' ');
    let frames = words.next()?.parse().ok()?;
    let rest = words.nth(2).map_or(String::new(), |rest| format!(" {rest}"));
    let rule = match block.strip_prefix("chain ") {
        Some(chain) => format!("{table} {chain}: {before}counter{rest}"),
        None => format!("{table}: {block}"),
    };
    Some(RuleCount { rule, frames })
}

fn iptables(listing: &str) -> Vec<RuleCount> {
    let mut table = "";
    let mut counts = Vec::new();
    for line in listing.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if let Some((counted, rule)) = line.strip_prefix('[').and_then(|l| l.split_once("] ")) {
            let frames = counted.split(':').next().and_then(|n| n.parse().ok());
            counts.extend(frames.map(|frames| RuleCount { rule: format!("{table}: {rule}"), frames }));
        } else if let Some(policy) = line.strip_prefix(':') {
            let words: Vec<&str> = policy.split(' ').collect();
            let [chain, verdict @ ("ACCEPT" | "DROP"), counted] = words[..] else { continue };
            let frames = counted.trim_start_matches('[').split(':').next().and_then(|n| n.parse().ok());
            let rule = format!("{table}: policy of {chain}, {verdict}");
            counts.extend(frames.map(|frames| RuleCount { rule, frames }));
        }
    }
    counts
}
