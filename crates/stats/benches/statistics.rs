//! Time of each statistic on sets of a million values: `cargo bench -p linerate-stats --bench statistics [count]`.

use linerate_stats::analysis::{Settings, analyse, paired};
use linerate_stats::{
    bootstrap, effect, means, median, median_interval, modes, outliers, rank, sequential, trend,
};
use linerate_wire::SplitMix64;
use std::hint::black_box;
use std::time::Instant;

fn measure<T>(name: &str, mut work: impl FnMut() -> T) {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:<52} {:10.2} ms least {:10.2} median",
        times[0], times[2]
    );
}

/// Rates of a machine with two speeds, in frames/s.
fn rates(n: usize, seed: u64, share: f64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let speed = |u: f64| if u < 0.3 { 7.0e6 } else { 11.7e6 };
    (0..n)
        .map(|_| share * speed(uniform()) * (1.0 + 0.02 * (uniform() + uniform() - 1.0)))
        .collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn main() {
    let n = std::env::args()
        .find_map(|a| a.parse().ok())
        .unwrap_or(1_000_000);
    let (x, y) = (rates(n, 1, 1.0), rates(n, 2, 0.98));
    let (a, b) = (sorted(&x), sorted(&y));
    println!("two sets of {n} values each");
    measure("sorting one", || sorted(&x));
    measure("median_interval, unsorted", || {
        (median(&x), median_interval(&x, 0.95))
    });
    measure("Moments::of", || means::Moments::of(&x));
    measure("median_bca, 10,000 replicates", || {
        bootstrap::median_bca(&a, 0.95, bootstrap::REPLICATES, 1)
    });
    measure("outliers", || outliers::outliers(&x, &a));
    measure("two_modes", || modes::two_modes(&a));
    measure("dip of all", || modes::dip(&a));
    measure("mann_kendall", || trend::mann_kendall(&x));
    measure("neighbours_alike", || trend::neighbours_alike(&x));
    measure("runs", || trend::runs(&x, a[n / 2]));
    measure("mann_whitney", || rank::mann_whitney(&a, &b));
    measure("cliffs_delta", || effect::cliffs_delta(&a, &b));
    measure("effect::shift", || effect::shift(&a, &b, 0.95));
    measure("effect::ratio", || effect::ratio(&a, &b, 0.95));
    measure("brown_forsythe", || means::brown_forsythe(&a, &b));
    let logs: Vec<f64> = x.iter().zip(&y).map(|(x, y)| (y / x).ln()).collect();
    measure("signed_rank", || rank::signed_rank(&logs));
    measure("sequential::Boundary, 6 looks", || {
        let mut boundary = sequential::Boundary::default();
        (1..=6)
            .map(|look| boundary.look(n * look / 6, look as f64 / 6.0))
            .max()
    });
    measure("effect::centre", || effect::centre(&logs, 0.95));
    measure("mann_whitney_null of 100 and 100", || {
        rank::mann_whitney_null(100, 100)
    });
    measure("analyse, all of both sets", || {
        analyse(&[("a", &x), ("b", &y)], &Settings::default())
    });
    let pairs: Vec<(f64, f64)> = y.iter().copied().zip(x.iter().copied()).collect();
    measure("paired", || paired(&pairs, &Settings::default()));
    measure("analyse, 5 and 5 values", || {
        analyse(&[("a", &x[..5]), ("b", &y[..5])], &Settings::default())
    });
}
