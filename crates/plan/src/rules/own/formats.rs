//! Recognises the firewall of a rule file, and refuses forbidden statements.

use super::tokens::{Token, TokenKind};
use crate::diagnostic::{Diagnostic, Span};
use crate::rules::Firewall;

/// Refuses statements that reach beyond the file.
pub(super) fn refuse(firewall: Firewall, tokens: &[Token<'_>]) -> Result<(), Diagnostic> {
    match firewall {
        Firewall::Nftables | Firewall::Pf | Firewall::OpenbsdPf => {
            let Some(token) = tokens.iter().find(|t| t.is(&["include"])) else { return Ok(()) };
            let help = match firewall {
                Firewall::Nftables => {
                    "put its lines here, or load all of it and save it as one file: nft list ruleset"
                }
                _ => "put its lines here",
            };
            let message = "this file includes another, which linerate does not read";
            Err(Diagnostic::at(token.span(), message).remedy(help))
        }
        Firewall::Iptables => {
            // A program of the file's choice, run as root.
            let starts = |t: &&Token<'_>| {
                t.kind == TokenKind::Word && (t.text.starts_with("--mod") || cluster_has_m(t.text))
            };
            let Some(token) = tokens.iter().find(starts) else { return Ok(()) };
            let message = format!("'{}' would run a program", token.text);
            Err(Diagnostic::at(token.span(), message).remedy("leave it out"))
        }
        Firewall::Ipfw => Ok(()),
        Firewall::Ipf => Err(Diagnostic::new("rule files of IP Filter cannot be measured")
            .remedy("there are nftables, iptables (iptables-save), pf and ipfw")),
    }
}

/// `-M`, alone or behind options that take no argument.
fn cluster_has_m(word: &str) -> bool {
    let Some(options) = word.strip_prefix('-').filter(|o| !o.starts_with('-')) else { return false };
    options.trim_start_matches(['v', 'n', 'x', 'f', '4', '6', 'w', 'c', 'h']).starts_with('M')
}

/// The words of the first line that is neither blank nor a comment.
pub(super) fn first_words(text: &str) -> Vec<&str> {
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#'));
    first.map(|line| line.split_whitespace().collect()).unwrap_or_default()
}

/// Whose rules a text is.
pub(super) fn recognised(text: &str) -> Result<Firewall, Diagnostic> {
    let shebang = text.lines().next().filter(|l| l.starts_with("#!")).unwrap_or_default();
    if shebang.contains("nft") {
        return Ok(Firewall::Nftables);
    }
    let words = first_words(text);
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    let nft_object = ["table", "chain", "rule", "set", "map", "element", "counter", "flowtable", "ruleset"];
    let runs = |program: &str| {
        text.lines().any(|l| l.split_whitespace().any(|w| w.trim_matches(['"', '\'']).ends_with(program)))
    };
    if shebang.contains("sh") {
        for (program, save) in [("nft", "nft list ruleset"), ("iptables", "iptables-save")] {
            if runs(program) && !runs("ipfw") {
                let message = format!("this is a shell script that runs {program}, not a rule file");
                let remedy = format!("run it where it belongs, and save what it makes: {save} > FILE");
                return Err(Diagnostic::at(Span { start: 0, end: shebang.len() }, message).remedy(remedy));
            }
        }
    }
    match first {
        "table" if second.starts_with('<') => Ok(Firewall::Pf),
        "table"
            if !["create", "add", "flush", "destroy"]
                .contains(&words.get(2).copied().unwrap_or_default()) =>
        {
            Ok(Firewall::Nftables)
        }
        "define" | "include" | "destroy" => Ok(Firewall::Nftables),
        "add" | "create" | "insert" | "delete" | "flush" if nft_object.contains(&second) => {
            Ok(Firewall::Nftables)
        }
        "add" | "-f" | "-q" | "flush" | "table" | "nat" if second != "on" => Ok(Firewall::Ipfw),
        _ if first.starts_with('*') && text.lines().any(|l| l.trim() == "COMMIT") => Ok(Firewall::Iptables),
        _ if runs("ipfw") => Ok(Firewall::Ipfw),
        "set" | "scrub" | "match" | "block" | "pass" | "anchor" | "antispoof" | "nat" | "rdr" | "table"
        | "queue" => Ok(Firewall::Pf),
        _ if words.get(1) == Some(&"=") || first.contains('=') => Ok(Firewall::Pf),
        "" => Err(Diagnostic::new("the file has no rules").remedy("name a file with rules")),
        _ => Err(Diagnostic::new("nothing shows which firewall reads this file")
            .remedy("say so: tool = \"nftables\", \"iptables\", \"pf\" or \"ipfw\"")),
    }
}
