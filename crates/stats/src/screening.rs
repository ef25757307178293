//! Which of many two-level factors matter: designs of few runs, and the effects that they show.

use crate::distribution::{t_critical, t_two_sided};
use crate::{Estimate, median};

/// The settings of each run, by factor: whether it is changed.
pub type Runs = Vec<Vec<bool>>;

/// Most factors of a design.
pub const MOST: usize = 30;

/// A screening design for up to [`MOST`] factors: the rows of a Hadamard matrix and their mirror images, so that no interaction of two
/// factors looks like the effect of one (Plackett & Burman, "The design of optimum multifactorial experiments", Biometrika 33, 1946;
/// fold-over: Box & Wilson 1951). It has 8 runs for 3 factors, 24 for 11, 64 for 30. The first run changes nothing. Each factor is
/// changed in one half of the runs, and each pair of factors in a quarter.
///
/// # Panics
/// With more factors.
pub fn screening(factors: usize) -> Runs {
    assert!(
        factors <= MOST,
        "a screening design has at most {MOST} factors"
    );
    let rows: Runs = (4..)
        .step_by(4)
        .filter(|order| *order > factors)
        .find_map(hadamard)
        .unwrap_or_default();
    // The first column, which is all true, makes the constant.
    let of = |row: &Vec<bool>, mirror: bool| {
        (1..=factors)
            .map(|j| (row[j] == row[0]) == mirror)
            .collect()
    };
    rows.iter()
        .map(|row| of(row, false))
        .chain(rows.iter().map(|row| of(row, true)))
        .collect()
}

/// All combinations of factors. The first run changes nothing.
pub fn factorial(factors: usize) -> Runs {
    (0..1u32 << factors)
        .map(|run| (0..factors).map(|j| run >> j & 1 == 1).collect())
        .collect()
}

/// A Hadamard matrix: Sylvester's for powers of two, Paley's first for a prime and 1; else none.
fn hadamard(order: usize) -> Option<Runs> {
    if order.is_power_of_two() {
        let at = |i: usize, j: usize| (i & j).count_ones().is_multiple_of(2);
        return Some(
            (0..order)
                .map(|i| (0..order).map(|j| at(i, j)).collect())
                .collect(),
        );
    }
    let q = order - 1;
    if q % 4 != 3 || (2..q).any(|d| q.is_multiple_of(d)) {
        return None;
    }
    let is_square = |n: usize| (1..q).any(|x| x * x % q == n);
    let at = |i: usize, j: usize| match (i, j) {
        (0, _) => true,
        (_, 0) => false,
        (i, j) if i == j => true,
        (i, j) => is_square((q + i - j) % q),
    };
    Some(
        (0..order)
            .map(|i| (0..order).map(|j| at(i, j)).collect())
            .collect(),
    )
}

/// The relative rate of each run: the median over blocks of the logarithm of its rate, less that block's median. `rates`: by run, then
/// by block; `None` where there was no valid trial. A run without any is `None`.
pub fn levels(rates: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let log = |run: &[Option<f64>], block: usize| {
        run.get(block)
            .copied()
            .flatten()
            .filter(|r| *r > 0.0)
            .map(f64::ln)
    };
    let blocks = rates.iter().map(Vec::len).max().unwrap_or(0);
    let middles: Vec<Option<f64>> = (0..blocks)
        .map(|block| {
            median(
                &rates
                    .iter()
                    .filter_map(|run| log(run, block))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    let level = |run: &Vec<Option<f64>>| {
        let beside: Vec<f64> = (0..blocks)
            .filter_map(|block| Some(log(run, block)? - middles[block]?))
            .collect();
        median(&beside)
    };
    rates.iter().map(level).collect()
}

/// The effect of a factor, or of two together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The factor, and the other one if this is an interaction.
    pub of: (usize, Option<usize>),
    /// The factor of the rate: with the change by without, with its 95 % interval. For an interaction: the rate with both by that
    /// expected of their own effects. `n`: runs.
    pub ratio: Estimate,
    /// Probability of an effect as large as this one, or larger, where there is none.
    pub p: f64,
}

/// Effects of all factors and of these pairs, by least squares over runs. The spread of runs about the model is the error: it contains
/// the noise of trials, that of set-ups, and everything that the model lacks. `levels`: of [`levels`]. `None` where runs are too few, or
/// do not tell the terms apart.
pub fn effects(
    runs: &Runs,
    levels: &[Option<f64>],
    pairs: &[(usize, usize)],
) -> Option<Vec<Effect>> {
    let factors = runs.first()?.len();
    let sign = |run: &[bool], j: usize| if run[j] { 1.0 } else { -1.0 };
    let terms = || {
        (0..factors)
            .map(|j| (j, None))
            .chain(pairs.iter().map(|(a, b)| (*a, Some(*b))))
    };
    let row = |run: &Vec<bool>| -> Vec<f64> {
        let of = |(a, b): (usize, Option<usize>)| sign(run, a) * b.map_or(1.0, |b| sign(run, b));
        std::iter::once(1.0).chain(terms().map(of)).collect()
    };
    let (rows, values): (Vec<Vec<f64>>, Vec<f64>) = runs
        .iter()
        .zip(levels)
        .filter_map(|(run, level)| Some((row(run), (*level)?)))
        .unzip();
    let (n, m) = (rows.len(), rows.first()?.len());
    let df = n.checked_sub(m).filter(|df| *df > 0)? as f64;
    let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum();
    let inverse = inverse(
        (0..m)
            .map(|i| (0..m).map(|j| product(i, j)).collect())
            .collect(),
    )?;
    let against: Vec<f64> = (0..m)
        .map(|i| rows.iter().zip(&values).map(|(row, y)| row[i] * y).sum())
        .collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let fitted: Vec<f64> = inverse.iter().map(|row| dot(row, &against)).collect();
    let residual: f64 = rows
        .iter()
        .zip(&values)
        .map(|(row, y)| (y - dot(row, &fitted)).powi(2))
        .sum();
    let t = t_critical(0.05, df);
    let effect = |(number, of): (usize, (usize, Option<usize>))| {
        // From without (-1) to with (+1); of an interaction: a quarter of the runs has both, the effect is that beyond their own.
        let size = if of.1.is_some() { 4.0 } else { 2.0 };
        let (middle, i) = (size * fitted[number + 1], number + 1);
        let error = size * (inverse[i][i] * residual / df).sqrt();
        let p = if error > 0.0 {
            t_two_sided(middle / error, df)
        } else {
            f64::from(u8::from(middle == 0.0))
        };
        let [low, high] = [middle - t * error, middle + t * error].map(|end| Some(end.exp()));
        Effect {
            of,
            ratio: Estimate {
                median: middle.exp(),
                low,
                high,
                n,
            },
            p,
        }
    };
    Some(terms().enumerate().map(effect).collect())
}

/// [`effects`] with the interactions of the factors that matter in the model: those whose p is below `alpha`, twice, because an
/// interaction that is not in the model is noise.
pub fn with_interactions(runs: &Runs, levels: &[Option<f64>], alpha: f64) -> Option<Vec<Effect>> {
    let mut found = effects(runs, levels, &[])?;
    for _ in 0..2 {
        let clear: Vec<usize> = found
            .iter()
            .filter(|e| e.of.1.is_none() && e.p < alpha)
            .map(|e| e.of.0)
            .collect();
        let pairs: Vec<(usize, usize)> = clear
            .iter()
            .enumerate()
            .flat_map(|(k, a)| clear[k + 1..].iter().map(|b| (*a, *b)))
            .collect();
        // Where runs are too few for all pairs, the effects alone remain.
        found = effects(runs, levels, &pairs).unwrap_or(found);
    }
    Some(found)
}

/// The inverse of a matrix, by Gauss and Jordan with pivots; `None` for a singular one.
fn inverse(mut a: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(u8::from(i == j))));
    }
    for column in 0..n {
        let pivot =
            (column..n).max_by(|x, y| a[*x][column].abs().total_cmp(&a[*y][column].abs()))?;
        a.swap(column, pivot);
        let divisor = a[column][column];
        if divisor.abs() < 1e-9 {
            return None;
        }
        a[column].iter_mut().for_each(|x| *x /= divisor);
        let base = a[column].clone();
        for (_, row) in a.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let factor = row[column];
            row.iter_mut()
                .zip(&base)
                .for_each(|(x, b)| *x -= factor * b);
        }
    }
    Some(a.into_iter().map(|row| row[n..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::holm;
    use crate::tests::normal;
    use linerate_wire::SplitMix64;

    fn changed(runs: &Runs, of: &[usize]) -> usize {
        runs.iter().filter(|run| of.iter().all(|j| run[*j])).count()
    }

    #[test]
    fn designs_are_balanced_and_clear_of_interactions() {
        for factors in 1..=MOST {
            let runs = screening(factors);
            let n = runs.len();
            assert!(
                n <= 4 * (factors + 1) && n >= 8 || factors == 1,
                "{factors}: {n}"
            );
            assert!(runs[0].iter().all(|changed| !changed));
            for a in 0..factors {
                assert_eq!(changed(&runs, &[a]), n / 2, "{factors}");
                for b in a + 1..factors {
                    assert_eq!(changed(&runs, &[a, b]), n / 4, "{factors}: {a} {b}");
                    // No product of two columns correlates with a third.
                    let sign = |run: &[bool], j: usize| if run[j] { 1 } else { -1 };
                    let shared = |c: usize| {
                        runs.iter()
                            .map(|r| sign(r, a) * sign(r, b) * sign(r, c))
                            .sum::<i32>()
                    };
                    assert!(
                        (0..factors).all(|c| c == a || c == b || shared(c) == 0),
                        "{factors}: {a} {b}"
                    );
                }
            }
        }
        assert_eq!(
            factorial(2),
            [[false, false], [true, false], [false, true], [true, true]]
        );
    }

    /// The yield of Box, Hunter & Hunter, "Statistics for Experimenters" (1978), section 10.2: the pilot plant. Temperature, concentration
    /// and catalyst have effects of 23, -5 and 1.5 on the yield, temperature and catalyst together 10.
    #[test]
    fn effects_of_the_pilot_plant() {
        let yields = [60.0, 72.0, 54.0, 68.0, 52.0, 83.0, 45.0, 80.0f64];
        let found = effects(&factorial(3), &yields.map(Some), &[(0, 2)]).unwrap();
        let sizes: Vec<f64> = found.iter().map(|e| e.ratio.median.ln()).collect();
        // An interaction as the book has it is half of what both do beyond their own effects.
        for (size, book) in sizes.iter().zip([23.0, -5.0, 1.5, 20.0]) {
            assert!((size - book).abs() < 1e-9, "{sizes:?}");
        }
    }

    #[test]
    fn a_run_without_trials_and_a_drift_change_no_effect() {
        let runs = screening(3);
        let rates = |run: &Vec<bool>| -> Vec<Option<f64>> {
            let level = if run[1] { 300.0 } else { 100.0 };
            (1..7).map(|block| Some(level * f64::from(block))).collect()
        };
        let mut rates: Vec<_> = runs.iter().map(rates).collect();
        rates[5].clear();
        let levels = levels(&rates);
        assert_eq!(levels.iter().filter(|level| level.is_none()).count(), 1);
        let found = effects(&runs, &levels, &[]).unwrap();
        assert!(
            (found[1].ratio.median - 3.0).abs() < 1e-9
                && (found[0].ratio.median - 1.0).abs() < 1e-9
        );
        assert_eq!(
            effects(&runs, &levels[..4], &[]),
            None,
            "as many terms as runs"
        );
    }

    /// Trials of a router whose frames take 1,000 ns and the sum of the costs of its settings. Blocks drift, each set-up is off by 2 %,
    /// each trial by 15 %, and one in 20 by much.
    fn measured(
        runs: &Runs,
        costs: &[f64],
        blocks: usize,
        random: &mut SplitMix64,
    ) -> Vec<Option<f64>> {
        let levels: Vec<f64> = runs.iter().map(|_| 1.0 + 0.02 * normal(random)).collect();
        let mut rates: Vec<Vec<Option<f64>>> = vec![Vec::new(); runs.len()];
        for _ in 0..blocks {
            let drift = (0.2 * normal(random)).exp();
            for (number, run) in runs.iter().enumerate() {
                let cost: f64 = run
                    .iter()
                    .zip(costs)
                    .filter(|(on, _)| **on)
                    .map(|(_, cost)| cost)
                    .sum();
                let wild = if random.next_u64().is_multiple_of(20) {
                    0.6
                } else {
                    1.0
                };
                let rate = 1e9 / (1000.0 + cost)
                    * levels[number]
                    * drift
                    * wild
                    * (0.15 * normal(random)).exp();
                rates[number].push(Some(rate));
            }
        }
        super::levels(&rates)
    }

    #[test]
    fn three_of_ten_settings_are_found_and_no_other() {
        let mut costs = [0.0; 10];
        (costs[1], costs[4], costs[8]) = (-200.0, 450.0, -120.0);
        let mut random = SplitMix64::new(14);
        let whole = (0..200).filter(|_| {
            let runs = screening(10);
            let screened =
                with_interactions(&runs, &measured(&runs, &costs, 16, &mut random), 0.1).unwrap();
            let left: Vec<usize> = screened
                .iter()
                .filter(|e| e.of.1.is_none() && e.p < 0.1)
                .map(|e| e.of.0)
                .collect();
            let runs: Runs = if left.len() <= 4 {
                let once = factorial(left.len());
                let times = (16 / once.len()).clamp(1, 4);
                (0..times).flat_map(|_| once.clone()).collect()
            } else {
                screening(left.len())
            };
            let costs: Vec<f64> = left.iter().map(|j| costs[*j]).collect();
            let confirmed =
                with_interactions(&runs, &measured(&runs, &costs, 30, &mut random), 0.1).unwrap();
            let p: Vec<f64> = confirmed
                .iter()
                .filter(|e| e.of.1.is_none())
                .map(|e| e.p)
                .collect();
            let kept: Vec<usize> = left
                .iter()
                .zip(holm(&p))
                .filter(|(_, p)| *p < 0.05)
                .map(|(j, _)| *j)
                .collect();
            kept == [1, 4, 8]
        });
        let whole = whole.count();
        assert!(whole >= 185, "{whole} of 200 campaigns");
    }
}
