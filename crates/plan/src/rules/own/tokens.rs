//! The words and signs of a rule file, in the languages of all firewalls.

use crate::diagnostic::{Diagnostic, Span};
use crate::rules::Firewall;

/// A word or a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// The word without its quotes, or one sign.
    pub text: &'t str,
    /// First byte in the file.
    pub at: usize,
    /// Line, from 1.
    pub line: usize,
    pub kind: TokenKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    /// A word, or a text of several, in quotes.
    Quoted,
    Sign,
}

impl Token<'_> {
    /// Whether this is a word of the language, and no text in quotes.
    pub fn is(&self, words: &[&str]) -> bool {
        self.kind == TokenKind::Word && words.contains(&self.text)
    }

    pub fn span(&self) -> Span {
        Span {
            start: self.at,
            end: self.at + self.text.len(),
        }
    }

    pub fn is_sign(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }
}

/// Bytes of a word that is looked at, at most.
const LONGEST: usize = 1000;
/// Signs that stand between words without blanks.
const SIGNS: &[u8] = b"{}()[],;=!<>\"";

/// Takes a file apart. Comments are left out.
///
/// # Errors
/// A quote that does not end.
pub(super) fn tokens(text: &str, firewall: Firewall) -> Result<Vec<Token<'_>>, Diagnostic> {
    let quotes_words = matches!(firewall, Firewall::Nftables | Firewall::Iptables);
    let bytes = text.as_bytes();
    let (mut tokens, mut at, mut line, mut in_quotes) = (Vec::new(), 0, 1, false);
    let word_at = |start: usize, end: usize, line, kind| Token {
        text: &text[start..end],
        at: start,
        line,
        kind,
    };
    while at < bytes.len() {
        let comment = || match firewall {
            Firewall::Nftables => true,
            Firewall::Iptables => text[..at]
                .rsplit('\n')
                .next()
                .is_some_and(|before| before.trim().is_empty()),
            Firewall::Ipfw => !in_quotes && (at == 0 || bytes[at - 1].is_ascii_whitespace()),
            Firewall::Pf | Firewall::OpenbsdPf | Firewall::Ipf => !in_quotes,
        };
        match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
            }
            b if b.is_ascii_whitespace() => at += 1,
            b'#' if comment() => at = text[at..].find('\n').map_or(bytes.len(), |end| at + end),
            b'"' if quotes_words => {
                let end = quoted(bytes, at + 1, firewall == Firewall::Iptables);
                let Some(end) = end else {
                    let quote = Span {
                        start: at,
                        end: at + 1,
                    };
                    return Err(Diagnostic::at(quote, "this quote does not end").remedy("close it"));
                };
                tokens.push(word_at(at + 1, end, line, TokenKind::Quoted));
                line += text[at..end].matches('\n').count();
                at = end + 1;
            }
            b if SIGNS.contains(&b) => {
                in_quotes ^= b == b'"';
                tokens.push(word_at(at, at + 1, line, TokenKind::Sign));
                at += 1;
            }
            _ => {
                let comments = firewall == Firewall::Nftables || firewall.is_pf();
                let ends = |b: &u8| {
                    b.is_ascii_whitespace() || SIGNS.contains(b) || (comments && *b == b'#')
                };
                let mut end = at
                    + bytes[at..]
                        .iter()
                        .position(ends)
                        .unwrap_or(bytes.len() - at);
                if end == at {
                    end += 1;
                }
                // A colon is part of an address of IPv6 or Ethernet, and a sign otherwise: `eth0:network`, `"a" : accept`.
                if let Some(colon) = text[at..end]
                    .find(':')
                    .filter(|_| end - at < LONGEST && !has_colons(&text[at..end]))
                {
                    if colon > 0 {
                        tokens.push(word_at(at, at + colon, line, TokenKind::Word));
                    }
                    tokens.push(word_at(at + colon, at + colon + 1, line, TokenKind::Sign));
                    at += colon + 1;
                } else {
                    tokens.push(word_at(at, end, line, TokenKind::Word));
                    at = end;
                }
            }
        }
    }
    Ok(tokens)
}

/// Where a text in quotes ends.
fn quoted(bytes: &[u8], from: usize, escapes: bool) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some(at),
            b'\\' if escapes => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// Whether colons are part of a word.
fn has_colons(word: &str) -> bool {
    let address = word.split('/').next().unwrap_or_default();
    address.matches(':').count() > 1
        && address
            .bytes()
            .all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.')
}
