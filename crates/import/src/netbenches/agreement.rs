//! Whether the medians of a set's logs are the published ones, and the differences if not.

use super::Rule;
use super::method::{Medians, printed};

/// The rule by which the medians of the runs, without failed ones, are the published ones, in their order; `None` if neither rule
/// gives them. If both rules do, it is [`Rule::Mean`].
///
/// Published numbers are compared with the recomputed ones as printed by `%.8g`.
pub fn rule(runs: &[Option<Medians>], published: &[f64]) -> Option<Rule> {
    let by = |rule: Rule| {
        let recomputed = runs.iter().flatten().map(|m| m.by(rule));
        recomputed.eq(published.iter().copied().map(printed))
    };
    [Rule::Mean, Rule::Upper].into_iter().find(|r| by(*r))
}

/// The rule that explains more published values, if neither explains all.
pub fn likelier(runs: &[Option<Medians>], published: &[f64]) -> Rule {
    let explained = |rule: Rule| {
        let recomputed: Vec<f64> = runs.iter().flatten().map(|m| m.by(rule)).collect();
        published.iter().filter(|p| recomputed.contains(p)).count()
    };
    if explained(Rule::Upper) > explained(Rule::Mean) { Rule::Upper } else { Rule::Mean }
}

/// A run as a disagreement names it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// `run 3`, or the log's name where it has no number.
    pub name: &'a str,
    /// Its recomputed figure.
    pub figure: Option<f64>,
    /// Its log may be that of a later profiling run of the same name.
    pub profiled: bool,
}

/// The difference between recomputed and published medians, in words.
pub fn difference(runs: &[Named<'_>], published: &[f64]) -> String {
    let figures: Vec<(usize, f64)> =
        runs.iter().enumerate().filter_map(|(i, r)| Some((i, r.figure?))).collect();
    let values: Vec<f64> = figures.iter().map(|(_, f)| *f).collect();
    if let Some(dropped) = missing(&values, published) {
        let names: Vec<String> = dropped
            .iter()
            .map(|i| format!("{} ({})", runs[figures[*i].0].name, shown(figures[*i].1)))
            .collect();
        return format!("dropped by hand: {}", listed(&names));
    }
    if let Some(extra) = missing(published, &values) {
        let extra: Vec<String> = extra.iter().map(|i| shown(published[*i])).collect();
        return format!("published without a log: {}", listed(&extra));
    }
    if same_in_another_order(&values, published) {
        return "the same medians in another order".into();
    }
    if values.len() != published.len() {
        return format!(
            "{} medians published, {} recomputed, and they differ",
            published.len(),
            values.len()
        );
    }
    let changed = figures.iter().zip(published).filter(|((_, figure), value)| figure != *value);
    let parts: Vec<String> =
        changed.map(|((run, figure), value)| changed_run(&runs[*run], *figure, *value)).collect();
    listed(&parts)
}

fn changed_run(run: &Named<'_>, figure: f64, published: f64) -> String {
    let percent = 100.0 * (figure / published - 1.0);
    let why = if run.profiled { "; its log was overwritten by a later profiling run" } else { "" };
    format!(
        "{}: the log gives {}, published is {} ({percent:+.2} %){why}",
        run.name,
        shown(figure),
        shown(published)
    )
}

/// Which of `all` are left out in `part`, if `part` is `all` without some; `None` if it is not, or nothing is left out.
fn missing(all: &[f64], part: &[f64]) -> Option<Vec<usize>> {
    let mut left_out = Vec::new();
    let mut rest = part.iter().peekable();
    for (index, value) in all.iter().enumerate() {
        if rest.next_if(|p| *p == value).is_none() {
            left_out.push(index);
        }
    }
    // An empty list does not show which runs were dropped.
    (rest.peek().is_none() && !left_out.is_empty() && !part.is_empty()).then_some(left_out)
}

fn same_in_another_order(a: &[f64], b: &[f64]) -> bool {
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    sorted(a) == sorted(b)
}

/// A few of many.
fn listed(parts: &[String]) -> String {
    const FEW: usize = 5;
    let mut text = parts.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    if parts.len() > FEW {
        text += &format!(" and {} more", parts.len() - FEW);
    }
    text
}

/// As the archive prints it, but never with an exponent.
fn shown(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn medians(mean: f64, upper: f64) -> Option<Medians> {
        Some(Medians { mean, upper })
    }

    #[test]
    fn rules() {
        let runs = [medians(1.5, 2.0), None, medians(3.0, 3.0)];
        assert_eq!(rule(&runs, &[1.5, 3.0]), Some(Rule::Mean));
        assert_eq!(rule(&runs, &[2.0, 3.0]), Some(Rule::Upper));
        assert_eq!(rule(&runs[1..], &[3.0]), Some(Rule::Mean));
        assert_eq!(rule(&[None, None], &[]), Some(Rule::Mean));
        assert_eq!((rule(&runs, &[3.0, 1.5]), rule(&runs, &[1.5]), rule(&runs, &[])), (None, None, None));
        assert_eq!(likelier(&runs, &[2.0]), Rule::Upper);
    }

    fn named<'a>(figures: &[f64]) -> Vec<Named<'a>> {
        let names = ["run 1", "run 2", "run 3", "run 4"];
        figures.iter().zip(names).map(|(f, name)| Named { name, figure: Some(*f), profiled: false }).collect()
    }

    #[test]
    fn differences_in_words() {
        let mut runs = named(&[10.0, 20.0, 30.0]);
        assert_eq!(difference(&runs, &[10.0, 30.0]), "dropped by hand: run 2 (20)");
        assert_eq!(difference(&runs, &[10.0, 15.0, 20.0, 30.0]), "published without a log: 15");
        assert_eq!(difference(&runs, &[20.0, 10.0, 30.0]), "the same medians in another order");
        assert_eq!(difference(&runs, &[1.0]), "1 medians published, 3 recomputed, and they differ");
        runs[0].profiled = true;
        assert_eq!(
            difference(&runs, &[12.5, 20.0, 30.0]),
            "run 1: the log gives 10, published is 12.5 (-20.00 %); its log was overwritten by a later profiling run"
        );
    }

    proptest! {
        #[test]
        fn whatever_differs_is_told(a in prop::collection::vec(1u8..5, 0..6), b in prop::collection::vec(1u8..5, 0..6)) {
            let a: Vec<f64> = a.into_iter().take(4).map(f64::from).collect();
            let b: Vec<f64> = b.into_iter().map(f64::from).collect();
            prop_assume!(a != b);
            prop_assert!(!difference(&named(&a), &b).is_empty());
        }
    }
}
