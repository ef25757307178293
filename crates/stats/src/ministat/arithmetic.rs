//! ministat's arithmetic: the figures of a set, and Student's t test against the first set with one pooled variance.

use crate::distribution::t_critical;
use crate::select::{key, value};
use serde::Serialize;
use std::str::FromStr;

/// A generation of ministat's arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Era {
    /// To 2015, and Debian's package 20150715: the upper middle point is the median, the variance is summed in one pass.
    Old,
    /// Late 2015 to early 2016: the median is the mean of the two middle points.
    Mid,
    /// FreeBSD 11: in addition, the relative error takes into account that the reference is uncertain as well.
    Fb11,
    /// FreeBSD 12 and later: in addition, the variance is summed in two passes, over the sorted points.
    #[default]
    New,
}

impl Era {
    /// All of them, the oldest first.
    pub const ALL: [Era; 4] = [Era::Old, Era::Mid, Era::Fb11, Era::New];

    /// Name of the era on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Era::Old => "old",
            Era::Mid => "mid",
            Era::Fb11 => "fb11",
            Era::New => "new",
        }
    }
}

impl std::fmt::Display for Era {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Era {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ERAS: &str =
            "old (to 2015, Debian), mid (2015-16), fb11 (FreeBSD 11) or new (FreeBSD 12 and later)";
        let found = Era::ALL.into_iter().find(|e| e.name() == text);
        found.ok_or_else(|| format!("no generation of ministat is called {text:?}: {ERAS}"))
    }
}

/// How sure a difference must be: one of the six levels that ministat knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confidence(usize);

/// The levels in percent.
const LEVELS: [f64; 6] = [80.0, 90.0, 95.0, 98.0, 99.0, 99.5];

impl Confidence {
    /// In percent.
    pub fn percent(self) -> f64 {
        LEVELS[self.0]
    }

    /// The quantile for some degrees of freedom, to three decimals: as ministat's output has it (its errors, divided by their
    /// factors). At 99.5 % it is that of a two-sided level of 99.8 %, and not in all rows exactly: published blocks rest on it.
    fn t(self, freedom: usize) -> f64 {
        const LAST: usize = LEVELS.len() - 1;
        let thousandths = match (freedom, self.0) {
            (0 | 101.., level) => INFINITE[level],
            (7..=12, LAST) => ODD[freedom - 7],
            (_, LAST) => thousandths(0.002, freedom),
            (_, level) => thousandths(1.0 - LEVELS[level] / 100.0, freedom),
        };
        f64::from(thousandths) / 1000.0
    }
}

fn thousandths(alpha: f64, freedom: usize) -> u32 {
    (t_critical(alpha, freedom as f64) * 1000.0).round() as u32
}

impl Default for Confidence {
    /// 95 %.
    fn default() -> Self {
        Confidence(2)
    }
}

impl std::fmt::Display for Confidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.percent().to_string())
    }
}

impl FromStr for Confidence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: Result<f64, _> = text.trim_start().parse();
        let level = value
            .ok()
            .and_then(|v| LEVELS.iter().position(|percent| *percent == v));
        level.map(Confidence).ok_or_else(|| {
            format!("{text:?} is not a confidence level of ministat: 80, 90, 95, 98, 99 or 99.5")
        })
    }
}

/// Quantiles that ministat prints otherwise than Student's distribution has them, at 99.5 %: from 7 degrees of
/// freedom on, in thousandths.
const ODD: [u32; 6] = [4782, 4499, 4296, 4143, 4024, 3929];

/// Quantiles beyond 100 degrees of freedom, in thousandths.
const INFINITE: [u32; 6] = [1282, 1645, 1960, 2326, 2576, 3090];

/// Points under a name, with the sums that ministat makes of them.
#[derive(Debug, Clone)]
pub struct Dataset {
    name: String,
    sorted: Vec<f64>,
    sum: f64,
    sum_squares: f64,
    /// Sum of the squares around the average, over the sorted points.
    squares_around: f64,
}

/// The figures of a set that ministat prints.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Number of points.
    pub n: usize,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The median; in [`Era::Old`], the upper middle point of an even count.
    pub median: f64,
    /// The arithmetic mean.
    pub avg: f64,
    /// Standard deviation, with n - 1.
    pub stddev: f64,
    /// Square of the standard deviation.
    pub variance: f64,
}

impl Dataset {
    /// A set of points, in the order in which they came: the sums of the one-pass eras depend on it in their last digits.
    pub fn new(name: impl Into<String>, points: Vec<f64>) -> Self {
        let (mut sum, mut sum_squares) = (0.0, 0.0);
        for &point in &points {
            sum += point;
            sum_squares += point * point;
        }
        let average = sum / points.len() as f64;
        let sorted = sorted(points);
        let squares_around = sorted
            .iter()
            .fold(0.0, |sum, p| sum + (p - average) * (p - average));
        Dataset {
            name: name.into(),
            sorted,
            sum,
            sum_squares,
            squares_around,
        }
    }

    /// Name of the set: a file's, usually.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Points of the set, the smallest first.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// The figures that ministat of an era prints. Without points they are NaN; with one, its variance is.
    pub fn summary(&self, era: Era) -> Summary {
        let variance = self.variance(era);
        let n = self.sorted.len();
        Summary {
            n,
            min: self.sorted.first().copied().unwrap_or(f64::NAN),
            max: self.sorted.last().copied().unwrap_or(f64::NAN),
            median: self.median(era),
            avg: self.sum / n as f64,
            stddev: variance.sqrt(),
            variance,
        }
    }

    fn median(&self, era: Era) -> f64 {
        let (sorted, middle) = (&self.sorted, self.sorted.len() / 2);
        match sorted.get(middle) {
            None => f64::NAN,
            Some(upper) if sorted.len() % 2 == 1 || era < Era::Mid => *upper,
            Some(upper) => (sorted[middle - 1] + upper) / 2.0,
        }
    }

    fn variance(&self, era: Era) -> f64 {
        let n = self.sorted.len() as f64;
        let squares = if era >= Era::New {
            self.squares_around
        } else {
            self.sum_squares - self.sum * self.sum / n
        };
        squares / (n - 1.0)
    }
}

/// Sorts as ministat does. Zeros of both signs are equal there and keep their order, which shows in the output.
fn sorted(mut points: Vec<f64>) -> Vec<f64> {
    if points.is_sorted() {
        return points;
    }
    if points
        .iter()
        .any(|point| *point == 0.0 && point.is_sign_negative())
    {
        points.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.total_cmp(b)));
        return points;
    }
    // Integers of the same order: they sort twice as fast. Both conversions stay in the memory of the points.
    let mut keys: Vec<i64> = points.into_iter().map(key).collect();
    keys.sort_unstable();
    keys.into_iter().map(value).collect()
}

/// How a set differs from the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Whether the difference is larger than its error.
    pub proven: bool,
    /// Average of the set minus average of the reference.
    pub delta: f64,
    /// Half the width of the difference's interval.
    pub error: f64,
    /// The difference in percent of the reference's average.
    pub percent: f64,
    /// Half the width of that interval, in percent.
    pub percent_error: f64,
    /// The pooled standard deviation.
    pub pooled: f64,
}

/// Compares a set with the reference. Both should have at least 2 points.
pub fn difference(
    reference: &Summary,
    other: &Summary,
    confidence: Confidence,
    era: Era,
) -> Difference {
    let (n1, n2) = (reference.n as f64, other.n as f64);
    let freedom = reference.n + other.n - 2.min(reference.n + other.n);
    let t = confidence.t(freedom);
    let z = freedom as f64;
    let pooled = (((n1 - 1.0) * reference.variance + (n2 - 1.0) * other.variance) / z).sqrt();
    let error = t * (pooled * (1.0 / n1 + 1.0 / n2).sqrt());
    let delta = other.avg - reference.avg;
    let relative_error = if era >= Era::Fb11 {
        // Of the quotient of two averages, to first order.
        let ratio = other.avg * other.avg / (reference.avg * reference.avg);
        let squares = (n2 - 1.0) * other.variance + (n1 - 1.0) * reference.variance * ratio;
        t * (squares * (n1 + n2) / (n1 * n2 * z)).sqrt() * 100.0 / reference.avg
    } else {
        error * 100.0 / reference.avg
    };
    Difference {
        proven: delta.abs() > error,
        delta,
        error,
        percent: delta * 100.0 / reference.avg,
        percent_error: relative_error,
        pooled,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dataset;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_back_and_others_refused_with_a_list() {
        for era in Era::ALL {
            assert_eq!(era.name().parse(), Ok(era));
        }
        let error = "2015".parse::<Era>().unwrap_err().to_string();
        assert!(
            error.contains("2015") && Era::ALL.iter().all(|era| error.contains(era.name())),
            "{error}"
        );
        assert_eq!(Era::default().to_string(), "new");
    }

    #[test]
    fn levels_are_numbers() {
        for (text, percent) in [("80", 80.0), ("95", 95.0), ("99.50", 99.5), ("9.8e1", 98.0)] {
            assert_eq!(text.parse::<Confidence>().unwrap().percent(), percent);
        }
        for text in ["", "95%", "94", "x", "nan"] {
            assert!(text.parse::<Confidence>().is_err(), "{text}");
        }
        assert_eq!("99.50".parse::<Confidence>().unwrap().to_string(), "99.5");
    }

    /// As ministat prints them, in thousandths; the first three rows, which no two sets of 3 points reach, are Student's distribution.
    #[rustfmt::skip]
    const PRINTED: [[u32; 6]; 100] = [
        [3078, 6314, 12706, 31821, 63657, 318309],
        [1886, 2920, 4303, 6965, 9925, 22327],
        [1638, 2353, 3182, 4541, 5841, 10215],
        [1533, 2132, 2776, 3747, 4604, 7173],
        [1476, 2015, 2571, 3365, 4032, 5893],
        [1440, 1943, 2447, 3143, 3707, 5208],
        [1415, 1895, 2365, 2998, 3499, 4782],
        [1397, 1860, 2306, 2896, 3355, 4499],
        [1383, 1833, 2262, 2821, 3250, 4296],
        [1372, 1812, 2228, 2764, 3169, 4143],
        [1363, 1796, 2201, 2718, 3106, 4024],
        [1356, 1782, 2179, 2681, 3055, 3929],
        [1350, 1771, 2160, 2650, 3012, 3852],
        [1345, 1761, 2145, 2624, 2977, 3787],
        [1341, 1753, 2131, 2602, 2947, 3733],
        [1337, 1746, 2120, 2583, 2921, 3686],
        [1333, 1740, 2110, 2567, 2898, 3646],
        [1330, 1734, 2101, 2552, 2878, 3610],
        [1328, 1729, 2093, 2539, 2861, 3579],
        [1325, 1725, 2086, 2528, 2845, 3552],
        [1323, 1721, 2080, 2518, 2831, 3527],
        [1321, 1717, 2074, 2508, 2819, 3505],
        [1319, 1714, 2069, 2500, 2807, 3485],
        [1318, 1711, 2064, 2492, 2797, 3467],
        [1316, 1708, 2060, 2485, 2787, 3450],
        [1315, 1706, 2056, 2479, 2779, 3435],
        [1314, 1703, 2052, 2473, 2771, 3421],
        [1313, 1701, 2048, 2467, 2763, 3408],
        [1311, 1699, 2045, 2462, 2756, 3396],
        [1310, 1697, 2042, 2457, 2750, 3385],
        [1309, 1696, 2040, 2453, 2744, 3375],
        [1309, 1694, 2037, 2449, 2738, 3365],
        [1308, 1692, 2035, 2445, 2733, 3356],
        [1307, 1691, 2032, 2441, 2728, 3348],
        [1306, 1690, 2030, 2438, 2724, 3340],
        [1306, 1688, 2028, 2434, 2719, 3333],
        [1305, 1687, 2026, 2431, 2715, 3326],
        [1304, 1686, 2024, 2429, 2712, 3319],
        [1304, 1685, 2023, 2426, 2708, 3313],
        [1303, 1684, 2021, 2423, 2704, 3307],
        [1303, 1683, 2020, 2421, 2701, 3301],
        [1302, 1682, 2018, 2418, 2698, 3296],
        [1302, 1681, 2017, 2416, 2695, 3291],
        [1301, 1680, 2015, 2414, 2692, 3286],
        [1301, 1679, 2014, 2412, 2690, 3281],
        [1300, 1679, 2013, 2410, 2687, 3277],
        [1300, 1678, 2012, 2408, 2685, 3273],
        [1299, 1677, 2011, 2407, 2682, 3269],
        [1299, 1677, 2010, 2405, 2680, 3265],
        [1299, 1676, 2009, 2403, 2678, 3261],
        [1298, 1675, 2008, 2402, 2676, 3258],
        [1298, 1675, 2007, 2400, 2674, 3255],
        [1298, 1674, 2006, 2399, 2672, 3251],
        [1297, 1674, 2005, 2397, 2670, 3248],
        [1297, 1673, 2004, 2396, 2668, 3245],
        [1297, 1673, 2003, 2395, 2667, 3242],
        [1297, 1672, 2002, 2394, 2665, 3239],
        [1296, 1672, 2002, 2392, 2663, 3237],
        [1296, 1671, 2001, 2391, 2662, 3234],
        [1296, 1671, 2000, 2390, 2660, 3232],
        [1296, 1670, 2000, 2389, 2659, 3229],
        [1295, 1670, 1999, 2388, 2657, 3227],
        [1295, 1669, 1998, 2387, 2656, 3225],
        [1295, 1669, 1998, 2386, 2655, 3223],
        [1295, 1669, 1997, 2385, 2654, 3220],
        [1295, 1668, 1997, 2384, 2652, 3218],
        [1294, 1668, 1996, 2383, 2651, 3216],
        [1294, 1668, 1995, 2382, 2650, 3214],
        [1294, 1667, 1995, 2382, 2649, 3213],
        [1294, 1667, 1994, 2381, 2648, 3211],
        [1294, 1667, 1994, 2380, 2647, 3209],
        [1293, 1666, 1993, 2379, 2646, 3207],
        [1293, 1666, 1993, 2379, 2645, 3206],
        [1293, 1666, 1993, 2378, 2644, 3204],
        [1293, 1665, 1992, 2377, 2643, 3202],
        [1293, 1665, 1992, 2376, 2642, 3201],
        [1293, 1665, 1991, 2376, 2641, 3199],
        [1292, 1665, 1991, 2375, 2640, 3198],
        [1292, 1664, 1990, 2374, 2640, 3197],
        [1292, 1664, 1990, 2374, 2639, 3195],
        [1292, 1664, 1990, 2373, 2638, 3194],
        [1292, 1664, 1989, 2373, 2637, 3193],
        [1292, 1663, 1989, 2372, 2636, 3191],
        [1292, 1663, 1989, 2372, 2636, 3190],
        [1292, 1663, 1988, 2371, 2635, 3189],
        [1291, 1663, 1988, 2370, 2634, 3188],
        [1291, 1663, 1988, 2370, 2634, 3187],
        [1291, 1662, 1987, 2369, 2633, 3185],
        [1291, 1662, 1987, 2369, 2632, 3184],
        [1291, 1662, 1987, 2368, 2632, 3183],
        [1291, 1662, 1986, 2368, 2631, 3182],
        [1291, 1662, 1986, 2368, 2630, 3181],
        [1291, 1661, 1986, 2367, 2630, 3180],
        [1291, 1661, 1986, 2367, 2629, 3179],
        [1291, 1661, 1985, 2366, 2629, 3178],
        [1290, 1661, 1985, 2366, 2628, 3177],
        [1290, 1661, 1985, 2365, 2627, 3176],
        [1290, 1661, 1984, 2365, 2627, 3175],
        [1290, 1660, 1984, 2365, 2626, 3175],
        [1290, 1660, 1984, 2364, 2626, 3174],
    ];

    #[test]
    fn quantiles_are_those_that_ministat_prints() {
        for (row, printed) in PRINTED.iter().enumerate() {
            let computed: [f64; 6] = std::array::from_fn(|level| Confidence(level).t(row + 1));
            assert_eq!(
                computed,
                printed.map(|t| f64::from(t) / 1000.0),
                "{} degrees of freedom",
                row + 1
            );
        }
        assert_eq!(
            [0, 101].map(|freedom| Confidence::default().t(freedom)),
            [1.96; 2]
        );
    }

    #[test]
    fn the_eras_differ_in_median_and_variance() {
        let set = Dataset::new("a", vec![4.0, 1.0, 3.0, 10.0]);
        assert_eq!(set.summary(Era::Old).median, 4.0);
        for era in [Era::Mid, Era::Fb11, Era::New] {
            assert_eq!(set.summary(era).median, 3.5);
        }
        let new = set.summary(Era::New);
        assert_eq!(
            (new.n, new.min, new.max, new.avg, new.variance),
            (4, 1.0, 10.0, 4.5, 15.0)
        );
        assert_eq!(new.stddev, 15f64.sqrt());
        // One pass cancels: 2^53 + 1 has no place beside the squares.
        let far = Dataset::new("b", vec![1e9, 1e9 + 1.0, 1e9 + 2.0]);
        assert_eq!(far.summary(Era::New).variance, 1.0);
        assert_ne!(far.summary(Era::Fb11).variance, 1.0);
    }

    proptest! {
        #[test]
        fn points_are_sorted(points in proptest::collection::vec(any::<f64>(), 0..50)) {
            let mut expected = points.clone();
            expected.sort_by(f64::total_cmp);
            let in_order = Dataset::new("", expected.clone());
            prop_assert!(in_order.sorted().is_sorted() || expected.iter().any(|point| point.is_nan()));
            let found = Dataset::new("", points);
            prop_assert!(found.sorted().iter().zip(&expected).all(|(a, b)| a == b || a.is_nan() && b.is_nan()));
            prop_assert_eq!(found.sorted().len(), expected.len());
        }
    }

    #[test]
    fn zeros_keep_their_order() {
        let first = |points: &[f64]| Dataset::new("", points.to_vec()).sorted()[0].to_bits();
        assert_eq!(first(&[1.0, 0.0, -0.0]), 0f64.to_bits());
        assert_eq!(first(&[1.0, -0.0, 0.0]), (-0f64).to_bits());
    }

    #[test]
    fn sets_with_hardly_any_points_have_no_figures_rather_than_a_panic() {
        assert!(
            Dataset::new("none", vec![])
                .summary(Era::New)
                .median
                .is_nan()
        );
        assert!(
            Dataset::new("one", vec![1.0])
                .summary(Era::New)
                .variance
                .is_nan()
        );
    }

    /// A block of the FreeBSD forwarding archive (Xeon E5-2650v4, Chelsio T520, affinity: no-affinity and numa1), FreeBSD 11.
    #[test]
    fn a_published_difference_is_reproduced() {
        let set = |points: &[f64]| Dataset::new("", points.to_vec()).summary(Era::Fb11);
        let reference = set(&[9477860.0, 9573303.0, 9351036.0, 9571249.0, 9580847.0]);
        let other = set(&[10617361.0, 10670945.0, 10616020.0, 10584085.0, 10658458.0]);
        let found = difference(&reference, &other, Confidence::default(), Era::Fb11);
        assert!(found.proven);
        let figures = [
            found.delta,
            found.error,
            found.percent,
            found.percent_error,
            found.pooled,
        ];
        let text = figures.map(|f| super::super::format_g(f, 6));
        assert_eq!(
            text,
            ["1.11851e+06", "108191", "11.7604", "1.25701", "74182.7"]
        );
        let old = difference(&reference, &other, Confidence::default(), Era::Old);
        assert!((old.percent_error - 1.137_55).abs() < 1e-4, "{old:?}");
    }

    #[test]
    fn no_points_are_no_panic() {
        let none = Dataset::new("", vec![]).summary(Era::New);
        assert!(!difference(&none, &none, Confidence::default(), Era::New).proven);
    }
}
