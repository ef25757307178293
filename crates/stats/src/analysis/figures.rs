//! Numbers within sentences.

/// A p value: two digits, never 0.
pub fn p_value(p: f64) -> String {
    match p {
        p if p < 1e-15 => "< 1e-15".into(),
        p if p < 0.001 => format!("{p:.0e}"),
        p => figure(p, 2),
    }
}

/// A number with this number of significant digits, trailing zeros of the fraction left out.
pub fn figure(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{:.*e}", digits.saturating_sub(1), value);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    if !(-5..15).contains(&exponent) {
        return scientific;
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_digits_as_mean_something() {
        let figures = [0.0, 1.25, 99.96, 1234.5, 0.00123, 1e-9, 1e308, -7.0].map(|v| figure(v, 3));
        assert_eq!(figures, ["0", "1.25", "100", "1234", "0.00123", "1.00e-9", "1.00e308", "-7"]);
        let p = [0.0, 1e-9, 0.00049, 0.0494, 0.05, 1.0].map(p_value);
        assert_eq!(p, ["< 1e-15", "1e-9", "5e-4", "0.049", "0.05", "1"]);
    }
}
