//! Reads numbers off the front of bytes. Nothing here allocates.

/// A run of digits and the rest; `None` without a digit, or beyond 64 bits.
#[inline(always)]
pub fn integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut at = 0;
    while let Some(digit) = bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d <= 9) {
        // 19 digits always fit: only longer numbers need a check.
        value = if at < 19 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        at += 1;
    }
    (at > 0).then(|| (value, &bytes[at..]))
}

/// The bytes behind `prefix`.
#[inline(always)]
pub fn after<'a>(bytes: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    bytes.strip_prefix(prefix)
}

/// A decimal number with an optional sign and fraction (`-1505074016.06`), and the rest.
pub fn decimal(bytes: &[u8]) -> Option<(f64, &[u8])> {
    let end =
        bytes.iter().position(|b| !matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+')).unwrap_or(bytes.len());
    let number = std::str::from_utf8(&bytes[..end]).ok()?.parse::<f64>().ok()?;
    number.is_finite().then_some((number, &bytes[end..]))
}

/// A decimal number with a blank (pkt-gen's receivers of 2011 have none), a prefix of its unit and the unit: `14.88 Mpps`,
/// `488095 pps`.
pub fn quantity<'a>(bytes: &'a [u8], unit: &[u8]) -> Option<(f64, &'a [u8])> {
    let (number, rest) = decimal(bytes)?;
    let rest = after(rest, b" ").unwrap_or(rest);
    let (scale, rest) = match rest.first()? {
        b'K' | b'k' => (1e3, &rest[1..]),
        b'M' => (1e6, &rest[1..]),
        b'G' => (1e9, &rest[1..]),
        _ => (1.0, rest),
    };
    Some((number * scale, after(rest, unit)?))
}

/// The bytes up to and behind the first `needle`.
pub fn split<'a>(bytes: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(bytes, needle)?;
    Some((&bytes[..at], &bytes[at + needle.len()..]))
}
