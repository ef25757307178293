//! C's `%g`, because byte equality is asked for.

/// A number as C's `printf("%.*g", significant, value)` writes it: at most `significant` digits (0 counts as 1), no trailing
/// zeros, an exponent where it is below -4 or at least `significant`.
pub fn format_g(value: f64, significant: usize) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let significant = significant.max(1);
    // Rust rounds the exact value, halves to even, as glibc does.
    let scientific = format!("{value:.*e}", significant - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= i32::try_from(significant).unwrap_or(i32::MAX) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs());
    }
    let decimals = usize::try_from(significant as i64 - 1 - i64::from(exponent)).unwrap_or_default();
    trimmed(&format!("{value:.decimals$}")).into()
}

/// Without trailing zeros of a fraction.
fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As glibc's printf writes them.
    #[test]
    fn numbers_look_as_in_c() {
        let cases = [
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (1.0, 6, "1"),
            (100_000.0, 6, "100000"),
            (999_999.5, 6, "1e+06"),
            (1_118_510.0, 6, "1.11851e+06"),
            (0.000_1, 6, "0.0001"),
            (0.000_099_999_96, 6, "0.0001"),
            (0.000_012_345_67, 6, "1.23457e-05"),
            (-2_386_340.0, 6, "-2.38634e+06"),
            (9_092_915.5, 8, "9092915.5"),
            (10_942_352.5, 8, "10942352"),
            (10_942_353.5, 8, "10942354"),
            (123_456_789.0, 8, "1.2345679e+08"),
            (901.227_67, 8, "901.22767"),
            (2.5, 1, "2"),
            (3.5, 1, "4"),
            (0.5, 0, "0.5"),
            (1e100, 6, "1e+100"),
            (f64::MAX, 8, "1.7976931e+308"),
            (5e-324, 8, "4.9406565e-324"),
            (0.1, 17, "0.10000000000000001"),
            (f64::INFINITY, 6, "inf"),
            (f64::NEG_INFINITY, 6, "-inf"),
            (f64::NAN, 6, "nan"),
        ];
        for (value, significant, text) in cases {
            assert_eq!(format_g(value, significant), text, "{value:?} with {significant} digits");
        }
    }
}
