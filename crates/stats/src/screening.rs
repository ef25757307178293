//! Which of many changes matter: designs of few runs, and the effects that they show.
//!
//! A change is made or not. Changes that exclude each other are the levels of one factor, beside the level without any of them. Functions
//! take `factor_of`: by change, the number of its factor.

use crate::distribution::{t_critical, t_two_sided};
use crate::{Estimate, median};

/// The settings of each run, by change: whether it is made.
pub type Runs = Vec<Vec<bool>>;

/// Most changes of a design.
pub const MOST: usize = 30;
/// Runs of a design with levels, at least.
const FEWEST: usize = 8;

/// A screening design for up to [`MOST`] changes; [`plackett_burman`] where each is a factor of its own. Otherwise a regular two-level
/// design of 2^d runs, in which a factor of several levels takes several columns (the method of replacement: Addelman, "Orthogonal
/// main-effect plans for asymmetrical factorial experiments", Technometrics 4, 1962): the effects of different factors are orthogonal.
/// An interaction may look like an effect. Each level is made in as many runs as the others, the level without a change in at least as
/// many. The first run changes nothing.
///
/// # Panics
/// With more changes.
pub fn screening(factor_of: &[usize]) -> Runs {
    let sizes = sizes(factor_of);
    if sizes.len() == factor_of.len() {
        return plackett_burman(factor_of.len());
    }
    assert!(
        factor_of.len() <= MOST,
        "a design has at most {MOST} changes"
    );
    let least = FEWEST.max(2 * (factor_of.len() + 1));
    let mut bits = least.next_power_of_two().trailing_zeros();
    let columns = loop {
        match columns(&sizes, bits) {
            Some(columns) => break columns,
            None => bits += 1,
        }
    };
    let nth = nth_levels(factor_of);
    let of_run = |run: u32| -> Vec<bool> {
        let level = |factor: usize| {
            let bit =
                |(at, column): (usize, &u32)| ((run & column).count_ones() as usize & 1) << at;
            columns[factor].iter().enumerate().map(bit).sum::<usize>()
        };
        nth.iter()
            .map(|&(factor, nth)| level(factor) == nth)
            .collect()
    };
    (0..1u32 << bits).map(of_run).collect()
}

/// How many changes each factor has, in the order of their first changes.
fn sizes(factor_of: &[usize]) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    for (factor, nth) in nth_levels(factor_of) {
        sizes.resize(sizes.len().max(factor + 1), 0);
        sizes[factor] = nth;
    }
    sizes
}

/// By change: its factor, counted in the order of their first changes, and its number among the changes of this factor, from 1.
fn nth_levels(factor_of: &[usize]) -> Vec<(usize, usize)> {
    let mut known: Vec<(usize, usize)> = Vec::new();
    let mut next = |factor: &usize| {
        let found = known.iter().position(|(name, _)| name == factor);
        let at = found.unwrap_or_else(|| {
            known.push((*factor, 0));
            known.len() - 1
        });
        known[at].1 += 1;
        (at, known[at].1)
    };
    factor_of.iter().map(&mut next).collect()
}

/// The columns of each factor in a regular design of 2^`bits` runs: as many as the binary digits of its number of changes. The products
/// of a factor's columns belong to it as well, and no two factors have one in common. All columns have the highest bit, so that the
/// design is folded over. `None`: there are too few.
fn columns(sizes: &[usize], bits: u32) -> Option<Vec<Vec<u32>>> {
    let (all, half) = (1u32 << bits, 1u32 << (bits - 1));
    let mut taken = vec![false; all as usize];
    let mut found = vec![Vec::new(); sizes.len()];
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|factor| std::cmp::Reverse(sizes[*factor]));
    for factor in order {
        // Products of the columns so far; the empty product is 0.
        let mut products = vec![0u32];
        while products.len() <= sizes[factor] {
            let is_free = |column: &u32| {
                products.iter().all(|product| {
                    let next = product ^ column;
                    next != 0 && !taken[next as usize] && !products.contains(&next)
                })
            };
            let column = (half..all).find(is_free)?;
            found[factor].push(column);
            products.extend(products.clone().iter().map(|product| product ^ column));
        }
        products
            .iter()
            .for_each(|product| taken[*product as usize] = true);
    }
    Some(found)
}

/// A screening design for up to [`MOST`] factors: the rows of a Hadamard matrix and their mirror images, so that no interaction of two
/// factors looks like the effect of one (Plackett & Burman, "The design of optimum multifactorial experiments", Biometrika 33, 1946;
/// fold-over: Box & Wilson 1951). It has 8 runs for 3 factors, 24 for 11, 64 for 30. The first run changes nothing. Each factor is
/// changed in one half of the runs, and each pair of factors in a quarter.
///
/// # Panics
/// With more factors.
pub fn plackett_burman(factors: usize) -> Runs {
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
///
/// # Panics
/// With more combinations than there are numbers.
pub fn factorial(factor_of: &[usize]) -> Runs {
    let sizes = sizes(factor_of);
    let nth = nth_levels(factor_of);
    let of_run = |mut run: usize| -> Vec<bool> {
        let mut levels = Vec::new();
        for size in &sizes {
            levels.push(run % (size + 1));
            run /= size + 1;
        }
        nth.iter()
            .map(|&(factor, nth)| levels[factor] == nth)
            .collect()
    };
    (0..combinations(factor_of)).map(of_run).collect()
}

/// How many combinations there are.
pub fn combinations(factor_of: &[usize]) -> usize {
    sizes(factor_of).iter().map(|size| size + 1).product()
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

/// The effect of a change, or of two together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The change, and the other one if this is an interaction.
    pub of: (usize, Option<usize>),
    /// The factor of the rate: with the change by without any of its factor, with its 95 % interval. For an interaction: the rate with both by that
    /// expected of their own effects. `n`: runs.
    pub ratio: Estimate,
    /// Probability of an effect as large as this one, or larger, where there is none.
    pub p: f64,
}

/// Effects of all changes and of these pairs of different factors, by least squares over runs. An effect is a mean over the levels of the
/// other factors, each with the same weight. The spread of runs about the model is the error: it contains
/// the noise of trials, that of set-ups, and everything that the model lacks. `levels`: of [`levels`]. `None` where runs are too few, or
/// do not tell the terms apart.
pub fn effects(
    runs: &Runs,
    factor_of: &[usize],
    levels: &[Option<f64>],
    pairs: &[(usize, usize)],
) -> Option<Vec<Effect>> {
    let sizes = sizes(factor_of);
    let shares: Vec<f64> = nth_levels(factor_of)
        .iter()
        .map(|(factor, _)| 1.0 / (sizes[*factor] + 1) as f64)
        .collect();
    // From without to with it is 1. The mean over the levels of the factor is 0, so that no effect contains those of pairs.
    let made = |run: &[bool], j: usize| f64::from(u8::from(run[j])) - shares[j];
    let terms = || {
        (0..factor_of.len())
            .map(|j| (j, None))
            .chain(pairs.iter().map(|(a, b)| (*a, Some(*b))))
    };
    let row = |run: &Vec<bool>| -> Vec<f64> {
        let of = |(a, b): (usize, Option<usize>)| made(run, a) * b.map_or(1.0, |b| made(run, b));
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
        let (middle, i) = (fitted[number + 1], number + 1);
        let error = (inverse[i][i] * residual / df).sqrt();
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

/// [`effects`] with the interactions of the changes that matter in the model: those whose p is below `alpha`, twice, because an
/// interaction that is not in the model is noise.
pub fn with_interactions(
    runs: &Runs,
    factor_of: &[usize],
    levels: &[Option<f64>],
    alpha: f64,
) -> Option<Vec<Effect>> {
    let mut found = effects(runs, factor_of, levels, &[])?;
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
            .filter(|(a, b)| factor_of[*a] != factor_of[*b])
            .collect();
        // Where runs are too few for all pairs, the effects alone remain.
        found = effects(runs, factor_of, levels, &pairs).unwrap_or(found);
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
mod tests;
