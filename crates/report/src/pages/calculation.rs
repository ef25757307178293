//! The page of a calculation.

use crate::prelude::*;
use linerate_calc::{Amount, Calculation, Quantity, Unit};

/// The answer, the numbers that it comes from, all results, and how they follow.
pub fn calculation(calculation: &Calculation) -> Document {
    let mut page = Document::default();
    page.answer(&calculation.answer);
    if !calculation.given.is_empty() {
        let given = |q: &Quantity| format!("{} {}", q.name, q.amount);
        page.fact("given", calculation.given.iter().map(given).joined("; "));
    }
    let (settings, figures): (Vec<&Quantity>, Vec<&Quantity>) = calculation
        .results
        .iter()
        .partition(|result| matches!(result.amount, Amount::Text { .. }));
    if !figures.is_empty() {
        let rows = Table::of(figures)
            .column("result", "", |q| q.name)
            .column("value", "", |q| cell(&q.amount));
        page.table(rows.if_any("exactly", "", |q| exactly(&q.amount)));
    }
    if !settings.is_empty() {
        page.gap();
        let width = settings.iter().map(|q| q.name.len()).max().unwrap_or(0);
        settings.iter().for_each(|q| {
            page.marked_code(
                &format!("{:width$}  ", q.name),
                &q.amount.to_string(),
                Tone::Strong,
            )
        });
    }
    if let Some(grid) = &calculation.table {
        let columns = grid.columns.iter().enumerate();
        page.table(columns.fold(Table::of(&grid.rows), |rows, (at, name)| {
            rows.column(name, "", |row| cell(&row[at]))
        }));
    }
    page.gap();
    let formula: Vec<String> = calculation
        .formula
        .iter()
        .map(|line| line.to_string())
        .collect();
    for (name, lines) in [("formula", formula), ("source", calculation.source.clone())] {
        for (at, line) in lines.into_iter().enumerate() {
            page.fact(if at == 0 { name } else { "" }, line);
        }
    }
    calculation
        .notes
        .iter()
        .for_each(|note| page.item(&format!("{:<9}", "note"), note, Tone::Note));
    page
}

/// A cell with the value for people to see, and all digits for programs.
fn cell(amount: &Amount) -> Cell {
    match amount {
        Amount::Number { value, .. } => Cell::number(*value, amount.to_string()),
        Amount::Text { text } => Cell::Text(text.clone()),
    }
}

/// All digits of a value that is shown with fewer.
fn exactly(amount: &Amount) -> Option<String> {
    let Amount::Number { value, unit } = amount else {
        return None;
    };
    let digits = match *value {
        v if matches!(unit, Unit::Count | Unit::Share) || v == 0.0 => return None,
        v if v.fract() == 0.0 && (1.0..1e18).contains(&v) => grouped(v as u64),
        v => {
            let digits = significant(v, 10);
            let (whole, decimals) = digits.split_once('.').unwrap_or((&digits, ""));
            let whole = whole
                .parse()
                .map_or(whole.to_string(), |whole: u64| grouped(whole));
            format!("{whole}.{decimals}")
                .trim_end_matches('0')
                .trim_end_matches('.')
                .into()
        }
    };
    Some(format!("{digits} {}", unit.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Block;
    use linerate_calc::ethernet::{Load, line_rate};
    use linerate_calc::states::{Asked, pf_states};
    use linerate_wire::FrameMix;

    #[test]
    fn all_digits_stand_beside_short_values() {
        let page = calculation(&line_rate(Load::Link(1e10), &[FrameMix::single(64)]).unwrap());
        let text = page.text(crate::format::Style::default());
        assert!(
            text.contains("each direction     14.88 Mpps  14,880,952.38 frames/s"),
            "{text}"
        );
        assert!(
            text.contains("time of a frame       67.2 ns                 67.2 ns"),
            "{text}"
        );
    }

    #[test]
    fn a_page_has_answer_results_settings_and_their_origin() {
        let page = calculation(&pf_states(Asked::Connections(5e6), None).unwrap());
        let text = page.text(crate::format::Style::default());
        for says in [
            "A limit of 10,000,000 states needs a hash of 33,554,432 slots, which takes 2.5 GiB of memory.",
            "given    connections 5,000,000",
            "memory of the hash     2.5 GiB  2,684,354,560 B",
            "/boot/loader.conf  net.pf.states_hashsize=\"33554432\"",
            "formula  states = 2 x connections",
            "illustration 34",
            "note     OpenBSD",
        ] {
            assert!(text.contains(says), "{says}:\n{text}");
        }
        let value = page.blocks.iter().find_map(|block| match block {
            Block::Table(table) => Some(table.columns[1].cells[0].clone()),
            _ => None,
        });
        assert_eq!(value, Some(Cell::number(1e7, "10,000,000")));
    }
}
