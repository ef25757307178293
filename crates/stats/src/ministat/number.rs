//! Numbers as C's strtod reads them, to the last bit; plain decimals are read fast. (Hexadecimal ones below 2^-1022 with more than 53
//! bits may differ in the last.)

/// Why a word is no number.
pub(super) const NOT_A_NUMBER: &str = "is not a number";
pub(super) const NOT_FINITE: &str =
    "is no measured value: leave it out, or make the line a comment (#)";
pub(super) const TOO_LARGE: &str = "is too large for a floating-point number";

/// Exact powers of ten: up to 10^22 they have no more than 53 bits.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Whole numbers up to this are exact.
const MAX_EXACT: u64 = 1 << 53;

/// A plain decimal number (`-12.5`) at the beginning of `bytes`, and the bytes behind it; `None` for other bytes. A whole number
/// of up to 53 bits divided by an exact power of ten is rounded once, and thus the nearest: W. D. Clinger, "How to Read Floating
/// Point Numbers Accurately", PLDI 1990.
pub(super) fn plain_decimal(bytes: &[u8]) -> Option<(f64, &[u8])> {
    let (negative, unsigned) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    let (whole, mut rest) = digits(0, unsigned);
    let (mut mantissa, mut decimals) = (whole, 0);
    let mut count = unsigned.len() - rest.len();
    if let [b'.', fraction @ ..] = rest {
        (mantissa, rest) = digits(whole, fraction);
        decimals = fraction.len() - rest.len();
        count += decimals;
    }
    if count == 0 {
        return None;
    }
    // 19 digits cannot overflow.
    if count > 19 || mantissa > MAX_EXACT {
        let number = &bytes[..bytes.len() - rest.len()];
        return Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest));
    }
    let value = mantissa as f64 / POWERS[decimals];
    Some((if negative { -value } else { value }, rest))
}

/// Appends the digits at the beginning of `bytes` to a number, modulo 2^64; returns the bytes behind them. Joining eight at a
/// time in a register was measured to be no quicker.
fn digits(mut number: u64, mut bytes: &[u8]) -> (u64, &[u8]) {
    while let [digit @ b'0'..=b'9', rest @ ..] = bytes {
        number = number
            .wrapping_mul(10)
            .wrapping_add(u64::from(digit - b'0'));
        bytes = rest;
    }
    (number, bytes)
}

/// A word that is a number from its beginning to its end; blanks before it are allowed, as in C.
pub(super) fn number(word: &[u8]) -> Result<f64, &'static str> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = word
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(word.len());
    let word = &word[start..];
    if let Some((value, [])) = plain_decimal(word) {
        return Ok(value);
    }
    let text = std::str::from_utf8(word).map_err(|_| NOT_A_NUMBER)?;
    let value = match text.parse::<f64>() {
        Ok(value) => value,
        Err(_) => hexadecimal(text).ok_or(NOT_A_NUMBER)?,
    };
    let named = text
        .trim_start_matches(['+', '-'])
        .starts_with(|c: char| c.is_ascii_alphabetic());
    match value.is_finite() {
        true => Ok(value),
        false if named => Err(NOT_FINITE),
        false => Err(TOO_LARGE),
    }
}

/// A hexadecimal number, `0x1.8p3`.
fn hexadecimal(text: &str) -> Option<f64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let text = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))?;
    let (mantissa, exponent) = text.split_once(['p', 'P']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent: i128 = exponent.parse().ok()?;
    let mut bits = 0u64;
    for (digit, is_fraction) in whole
        .chars()
        .map(|d| (d, false))
        .chain(fraction.chars().map(|d| (d, true)))
    {
        let digit = u64::from(digit.to_digit(16)?);
        exponent = exponent.saturating_sub(if is_fraction { 4 } else { 0 });
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
        } else {
            // Digits that do not fit only decide how halves are rounded.
            bits |= u64::from(digit != 0);
            exponent = exponent.saturating_add(4);
        }
    }
    // By two factors, so that neither is infinite or 0 where the product is not: only the last product is rounded.
    let exponent = exponent.clamp(-2200, 1100) as i32;
    let value =
        bits as f64 * f64::powi(2.0, exponent / 2) * f64::powi(2.0, exponent - exponent / 2);
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hexadecimal_numbers_are_rounded_once() {
        let cases = [
            ("0x10", 16.0),
            ("0X1P-2", 0.25),
            ("-0x.8p1", -1.0),
            ("+0x1.8p+3", 12.0),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON),
            ("0x1.000000000000080000000000001p0", 1.0 + f64::EPSILON),
            ("0x0p99999999999999999999", 0.0),
            ("0x1p-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.8p-1075", 5e-324),
            ("0x1p-99999999999", 0.0),
            ("0x1.fffffffffffff7p1023", f64::MAX),
            ("0x1p-1022", f64::MIN_POSITIVE),
            ("0x1.fffffffffffffp-1023", f64::MIN_POSITIVE),
            ("0xffffffffffffffff", 18_446_744_073_709_551_615.0),
        ];
        for (text, value) in cases {
            assert_eq!(
                number(text.as_bytes()).map(f64::to_bits),
                Ok(value.to_bits()),
                "{text}"
            );
        }
        for text in ["0x", "0x.", "0x1p", "0x1p+", "0xg", "x1", "0x1.2.3", "0x+1"] {
            assert_eq!(number(text.as_bytes()), Err(NOT_A_NUMBER), "{text}");
        }
        assert_eq!(number(b"0x1p1024"), Err(TOO_LARGE));
        assert_eq!(number(b"0x1.fffffffffffff8p1023"), Err(TOO_LARGE));
    }

    #[test]
    fn only_whole_words_are_numbers() {
        for text in [
            "", ".", "-", "+", "1x", "1e", "e5", "1 2", "--1", "1_0", "1,5", "\u{ff11}", "nan(1)",
        ] {
            assert_eq!(number(text.as_bytes()), Err(NOT_A_NUMBER), "{text}");
        }
        for text in ["nan", "-NaN", "inf", "+Infinity"] {
            assert_eq!(number(text.as_bytes()), Err(NOT_FINITE), "{text}");
        }
        assert_eq!(number(b"-1e400"), Err(TOO_LARGE));
        assert_eq!(number(b"\x0b 1e-400"), Ok(0.0));
        assert_eq!(number(b"1\xff"), Err(NOT_A_NUMBER));
    }

    proptest! {
        /// The fast way gives the bits of the exact one.
        #[test]
        fn decimals_are_exact(text in "-?[0-9]{0,25}[.]?[0-9]{0,25}(e-?[0-9]{1,3})?") {
            let exact = text.parse::<f64>().ok().filter(|value| value.is_finite());
            prop_assert_eq!(number(text.as_bytes()).ok().map(f64::to_bits), exact.map(f64::to_bits));
        }

        #[test]
        fn hexadecimal_round_trip(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let (fraction, exponent) = (bits & ((1 << 52) - 1), bits >> 52 & 0x7ff);
            let sign = if value.is_sign_negative() { "-" } else { "" };
            let (first, exponent) = if exponent == 0 { (0, -1022) } else { (1, exponent as i64 - 1023) };
            let text = format!("{sign}0x{first}.{fraction:013x}p{exponent}");
            prop_assert_eq!(number(text.as_bytes()).map(f64::to_bits), Ok(bits));
        }
    }
}
