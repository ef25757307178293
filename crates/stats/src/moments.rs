//! Mean and standard deviation that neither overflow nor lose digits.

/// Count, mean and standard deviation of finite values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1; `None` for one value.
    pub stddev: Option<f64>,
}

impl Moments {
    /// Of values in any order; `None` for an empty set or an infinite value.
    ///
    /// Two passes with the correction for the mean's rounding (Chan, Golub & LeVeque, "Algorithms for computing the sample
    /// variance", Am. Stat. 37, 1983), over values scaled by a power of two where their squares could overflow.
    pub fn of(values: &[f64]) -> Option<Moments> {
        let n = values.len();
        let largest = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(*v), m.max(*v)));
        if n == 0 || !largest.is_finite() {
            return None;
        }
        if least == most {
            return Some(Moments { n, mean: least, stddev: (n > 1).then_some(0.0) });
        }
        let scale = scale_for(largest);
        let scaled = || values.iter().map(|v| v * scale);
        let mean = scaled().sum::<f64>() / n as f64;
        let (squares, rest) = scaled().fold((0.0, 0.0), |(s, r), v| {
            let d = v - mean;
            (s + d * d, r + d)
        });
        let variance = (squares - rest * rest / n as f64) / (n as f64 - 1.0);
        Some(Moments { n, mean: mean / scale, stddev: (n > 1).then(|| variance.max(0.0).sqrt() / scale) })
    }
}

/// 1, or a power of two that brings values of this size near 1.
fn scale_for(largest: f64) -> f64 {
    if (1e-100..1e100).contains(&largest) {
        return 1.0;
    }
    let exponent = largest.log2().floor().clamp(-1000.0, 1000.0);
    (-exponent).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_survive_a_large_offset_and_extreme_sizes() {
        let values: Vec<f64> = [1.0, 2.0, 3.0, 4.0].iter().map(|v| v + 1e9).collect();
        let m = Moments::of(&values).unwrap();
        assert_eq!((m.mean, m.stddev), (1e9 + 2.5, Some((5.0f64 / 3.0).sqrt())));
        for size in [1e308, 1e-300] {
            let m = Moments::of(&[-size, size, size]).unwrap();
            assert!((m.mean / size - 1.0 / 3.0).abs() < 1e-12, "{m:?}");
            assert!((m.stddev.unwrap() / size - (4.0f64 / 3.0).sqrt()).abs() < 1e-12, "{m:?}");
        }
    }

    #[test]
    fn equal_values_have_no_spread_at_all() {
        assert_eq!(Moments::of(&[0.1; 7]), Some(Moments { n: 7, mean: 0.1, stddev: Some(0.0) }));
        assert_eq!(Moments::of(&[0.1]).unwrap().stddev, None);
        assert_eq!(Moments::of(&[]), None);
        assert_eq!(Moments::of(&[1.0, f64::INFINITY]), None);
    }
}
