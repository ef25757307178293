//! A row of a table against the data: both medians and their difference, and possible causes of a wrong one.

use super::mapping::{Evidence, Table, TableRow};
use super::printed::{Printed, says_no_difference};
use super::{Figure, State};
use linerate_stats::ministat::{Confidence, Dataset, Era, difference, format_g};

/// The three figures of a row.
pub fn row(table: &Table, row: &TableRow, era: Era, evidence: &Evidence) -> Vec<Figure> {
    let sets = row
        .sources
        .iter()
        .map(|source| evidence.set(source))
        .collect();
    let judge = Judge {
        table,
        row,
        era,
        evidence,
        sets,
    };
    let mut figures: Vec<Figure> = [0, 1].map(|side| judge.median(side)).into();
    if !row.difference.is_empty() {
        let of_row = judge.difference();
        if matches!(of_row.state, State::Agrees | State::Truncated) {
            for figure in figures
                .iter_mut()
                .filter(|f| f.state == State::WrongInPrint)
            {
                let note = figure.note.take().unwrap_or_default();
                figure.note = Some(format!(
                    "{note}; the printed difference was computed with the data"
                ));
            }
        }
        figures.push(of_row);
    }
    figures
}

/// A row with its data.
struct Judge<'a> {
    table: &'a Table,
    row: &'a TableRow,
    era: Era,
    evidence: &'a Evidence,
    /// Of each source.
    sets: Vec<Option<Dataset>>,
}

impl Judge<'_> {
    fn set(&self, side: usize) -> Option<&Dataset> {
        self.sets.get(side)?.as_ref()
    }

    /// A figure without data.
    fn figure(&self, column: &str, printed: &str, sources: Vec<String>) -> Figure {
        Figure {
            illustration: self.table.illustration.clone(),
            caption: self.table.caption.clone(),
            row: self.row.setup.clone(),
            column: column.into(),
            printed: printed.into(),
            note: Some(
                self.row
                    .missing
                    .clone()
                    .unwrap_or_else(|| "not in this archive".into()),
            ),
            sources,
            ..Figure::default()
        }
    }

    fn median(&self, side: usize) -> Figure {
        let text = &self.row.printed[side];
        let source = self.row.sources.get(side);
        let mut figure = self.figure(
            &self.table.columns[side],
            text,
            source.cloned().into_iter().collect(),
        );
        let found = self.set(side).zip(source).zip(Printed::rate(text));
        let Some(((set, source), printed)) = found else {
            return figure;
        };
        let empty = set.sorted().is_empty();
        let found = if empty {
            0.0
        } else {
            set.summary(self.era).median
        };
        figure.computed = Some(rate(found, &printed));
        figure.state = printed.fits(found);
        figure.note = match figure.state {
            State::WrongInPrint => Some(self.explain(&printed, found, set, source)),
            _ => empty.then(|| "no run gave a figure".into()),
        };
        figure
    }

    /// Possible sources of the printed figure: a slip of the last digit, another figure of the same runs, or the median of other
    /// runs of the same hardware, most likely those of the same experiment.
    fn explain(&self, printed: &Printed, found: f64, set: &Dataset, source: &str) -> String {
        let is = |value: f64| printed.fits(value) != State::WrongInPrint;
        let summary = set.summary(self.era);
        let mut may_be = Vec::new();
        if ((found - printed.value) / printed.step).abs() < 2.0 {
            may_be.push("a slip in the last digit".to_string());
        }
        let own = [
            ("maximum", summary.max),
            ("minimum", summary.min),
            ("average", summary.avg),
        ];
        may_be.extend(
            own.iter()
                .filter(|(_, v)| is(*v))
                .map(|(what, _)| format!("the {what} of the runs")),
        );
        let folder = |path: &str| path.rsplit_once('/').map(|p| p.0.to_string());
        let others = self
            .evidence
            .siblings(source)
            .filter(|(_, s)| is(s.summary(self.era).median));
        let others: Vec<&str> = others.map(|(path, _)| path).collect();
        let near = others.iter().find(|path| folder(path) == folder(source));
        let far = others.first().filter(|_| may_be.is_empty());
        may_be.extend(near.or(far).map(|path| format!("the median of {path}")));
        let median = rate(found, printed);
        match may_be.is_empty() {
            true => format!("the median is {median}"),
            false => format!(
                "the median is {median}; the printed figure may be {}",
                may_be.join(", or ")
            ),
        }
    }

    fn difference(&self) -> Figure {
        let text = &self.row.difference;
        let mut figure = self.figure("difference", text, self.row.sources.clone());
        let both = self.set(0).zip(self.set(1));
        let Some((a, b)) = both.filter(|(a, b)| a.sorted().len() >= 3 && b.sorted().len() >= 3)
        else {
            if self
                .sets
                .iter()
                .flatten()
                .any(|set| set.sorted().is_empty())
            {
                // Without a figure on one side there is nothing to compare, and the document says so.
                let said = Printed::difference(text).is_none() && !says_no_difference(text);
                figure.state = if said {
                    State::Agrees
                } else {
                    State::WrongInPrint
                };
                figure.computed = Some("none".into());
                figure.note = Some("a set without a figure cannot be compared".into());
            }
            return figure;
        };
        let found = difference(
            &a.summary(self.era),
            &b.summary(self.era),
            Confidence::default(),
            self.era,
        );
        let told = match found.proven {
            true => format!(
                "{}% +/- {}%",
                format_g(found.percent, 6),
                format_g(found.percent_error, 6)
            ),
            false => "No difference proven".into(),
        };
        figure.state = match Printed::difference(text) {
            // The worse of the two.
            Some([percent, error]) if found.proven => percent
                .fits(found.percent)
                .max(error.fits(found.percent_error)),
            None if !found.proven && says_no_difference(text) => State::Agrees,
            _ => State::WrongInPrint,
        };
        figure.note =
            (figure.state == State::WrongInPrint).then(|| format!("the data give {told}"));
        figure.computed = Some(told);
        figure
    }
}

/// A rate in the unit of the printed one, with two digits more.
fn rate(value: f64, printed: &Printed) -> String {
    let (scale, unit) = if printed.value >= 1e6 || printed.step >= 1e4 {
        (1e6, "Mpps")
    } else {
        (1e3, "Kpps")
    };
    let decimals = ((scale / printed.step).log10().round() as i32 + 2).clamp(0, 6) as usize;
    format!("{:.decimals$} {unit}", value / scale)
}
