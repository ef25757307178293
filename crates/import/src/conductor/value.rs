//! Values that are no commands: numbers, addresses, paths.

/// Characters of an address.
const MOST_HOST: usize = 255;

/// A value without the comment that Conductor's own examples have behind it: `#` or `;` behind a blank.
///
/// ConfigParser would make the comment a part of the value, and Conductor then cannot connect to it. Commands keep their
/// comments: the shell handles them.
pub(super) fn without_comment(value: &str) -> &str {
    let mut blank = true;
    for (at, c) in value.char_indices() {
        if blank && matches!(c, '#' | ';') {
            return value[..at].trim_end();
        }
        blank = c.is_whitespace();
    }
    value
}

/// A whole number as Python's `int` reads it: a sign, digits, single underscores between digits. `None` for other texts; numbers
/// larger than an `i64` become the largest `i64`.
pub(super) fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let mut value: i64 = 0;
    for group in digits.split('_') {
        if group.is_empty() || !group.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        for digit in group.bytes() {
            value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
        }
    }
    Some(if negative { -value } else { value })
}

/// The fault of a host's name or address. ssh would take one that begins with `-` for an option.
pub(super) fn host_fault(host: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_alphanumeric() || "-._:%@[]".contains(c);
    if host.is_empty() {
        Some("is blank")
    } else if host.starts_with('-') {
        Some("begins with a -")
    } else if host.chars().any(char::is_whitespace) {
        Some("is more than one word")
    } else if host.chars().count() > MOST_HOST {
        Some("is longer than any name of a host")
    } else {
        (!host.chars().all(fits)).then_some("has characters that no host has")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_begin_behind_a_blank() {
        assert_eq!(without_comment("10.0.1.10          # Web server IP"), "10.0.1.10");
        assert_eq!(without_comment("6970 ; port"), "6970");
        assert_eq!(without_comment("# fill in"), "");
        assert_eq!(without_comment("a#b;c.cfg"), "a#b;c.cfg");
    }

    #[test]
    fn integers_are_pythons() {
        for (text, value) in [("10", 10), ("+1_000", 1000), ("-3", -3), ("007", 7)] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        assert_eq!(integer(&"9".repeat(100)), Some(i64::MAX));
        for wrong in ["", "-", "1.5", "_1", "1_", "1__0", "0x10", "1 2", "++1"] {
            assert_eq!(integer(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn hosts_that_ssh_can_be_given() {
        for host in ["192.168.5.1", "fe80::1%ix0", "[::1]", "lynx1", "root@lynx1.example", "münchen.example"]
        {
            assert_eq!(host_fault(host), None, "{host}");
        }
        for host in ["", "-oProxyCommand=x", "a b", "a;b", "a\u{7f}", "$(x)", &"a".repeat(300)] {
            assert!(host_fault(host).is_some(), "{host}");
        }
    }
}
