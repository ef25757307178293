//! The distributions that the tests rest on: normal, Student's t, non-central t.

use statrs::function::beta::beta_reg;
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::ln_gamma;
use std::f64::consts::{LN_2, SQRT_2};

/// From here on Student's t is computed by its normal approximation, which is then off by less than a hundred-thousandth
/// of p for all p above 1e-15: the continued fraction of the incomplete beta function would need too many terms.
const LARGE_DF: f64 = 3000.0;

/// P(Z > z) of the standard normal distribution.
pub fn normal_upper(z: f64) -> f64 {
    0.5 * erfc(z / SQRT_2)
}

/// The z with P(Z <= z) = `p`; infinite for 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// P(|Z| >= |z|).
pub fn normal_two_sided(z: f64) -> f64 {
    erfc(z.abs() / SQRT_2).min(1.0)
}

/// Two-sided p of a normal statistic that is this far from its mean, corrected for continuity by half of its `step`s; 1 without
/// any variance.
pub fn normal_p(distance: f64, half_step: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        1.0
    } else {
        normal_two_sided((distance.abs() - half_step).max(0.0) / variance.sqrt())
    }
}

/// P(|T| >= |t|) of Student's t with `df` degrees of freedom, which need not be whole.
///
/// The incomplete beta function (Abramowitz & Stegun 26.7.1); for many degrees of freedom the transformation to a
/// normal deviate of Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", Ann.
/// Math. Statist. 30 (1959).
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    let square = t * t;
    if df > LARGE_DF {
        let z = (8.0 * df + 1.0) / (8.0 * df + 3.0) * (df * (square / df).ln_1p()).sqrt();
        return normal_two_sided(z);
    }
    beta_reg(df / 2.0, 0.5, (df / (df + square)).min(1.0)).clamp(0.0, 1.0)
}

/// The t > 0 that |T| exceeds with probability `alpha` (0.05, say): the factor of a two-sided interval.
pub fn t_critical(alpha: f64, df: f64) -> f64 {
    let mut high = 2.0;
    while t_two_sided(high, df) > alpha && high < 1e300 {
        high *= 2.0;
    }
    bisect(0.0, high, |t| t_two_sided(t, df) > alpha)
}

/// P(T > t) of the non-central t with non-centrality `shift`: the power of a one-sided t test.
///
/// T is (Z + shift) / S with S a chi deviate over the root of its degrees of freedom (Johnson, Kotz & Balakrishnan,
/// "Continuous Univariate Distributions" 2, chapter 31): the normal tail is averaged over ln S by the trapezoidal rule,
/// which converges exponentially on a smooth density that vanishes at both ends.
pub fn noncentral_t_upper(t: f64, df: f64, shift: f64) -> f64 {
    let spread = 1.0 / (2.0 * df).sqrt();
    let (from, to) = (-(24.0 / df + 10.0 * spread), 10.0 * spread);
    // Narrow against the density, and against the normal tail, which falls within 1 / shift.
    let step = (spread / 12.0)
        .min(0.3 / (1.0 + shift.abs()))
        .max((to - from) / 20_000.0);
    let nodes = ((to - from) / step) as usize;
    let log_scale = 0.5 * df * (0.5 * df).ln() + LN_2 - ln_gamma(0.5 * df);
    let mut total = 0.0;
    let mut weights = 0.0;
    for i in 0..=nodes {
        let u = from + step * i as f64;
        let weight = (log_scale + df * u - 0.5 * df * (2.0 * u).exp()).exp();
        weights += weight;
        total += weight * normal_upper(t * u.exp() - shift);
    }
    // The weights sum to 1 / step but for rounding, which cancels.
    total / weights
}

/// The point where `above` turns from true to false between `low` and `high`, to the precision of f64.
pub fn bisect(mut low: f64, mut high: f64, above: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if above(middle) {
            low = middle
        } else {
            high = middle
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn textbook_quantiles() {
        close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-12);
        close(normal_two_sided(1.959_963_984_540_054), 0.05, 1e-10);
        // Any table of Student's t.
        for (df, alpha, t) in [
            (1.0, 0.05, 12.706_205),
            (4.0, 0.05, 2.776_445),
            (10.0, 0.01, 3.169_273),
            (30.0, 0.1, 1.697_261),
        ] {
            close(t_critical(alpha, df), t, 1e-6);
        }
        // One degree of freedom is Cauchy's distribution: P(|T| > 1) = 1/2.
        close(t_two_sided(1.0, 1.0), 0.5, 1e-12);
        close(
            t_two_sided(1e9, 1.0),
            2.0 / std::f64::consts::PI * 1e-9,
            1e-9,
        );
    }

    #[test]
    fn both_branches_of_t_meet() {
        for t in [0.01, 1.0, 2.0, 5.0] {
            close(
                t_two_sided(t, LARGE_DF + 1e-9),
                t_two_sided(t, LARGE_DF),
                2e-6,
            );
        }
    }

    #[test]
    fn a_shift_far_out_with_one_degree_of_freedom() {
        // By adaptive quadrature of the definition, elsewhere.
        close(noncentral_t_upper(12.7, 1.0, 20.0), 0.883_571_821_4, 1e-8);
        close(noncentral_t_upper(12.7, 1.7, 20.0), 0.905_427_853_1, 1e-8);
    }

    #[test]
    fn without_a_shift_the_non_central_t_is_the_central_one() {
        for df in [1.0, 1.3, 2.0, 9.7, 400.0, 1e6] {
            for t in [0.1, 1.0, 2.5] {
                close(
                    noncentral_t_upper(t, df, 0.0),
                    t_two_sided(t, df) / 2.0,
                    1e-6,
                );
            }
        }
    }
}
