//! The catalogue against rows and their document.

use super::*;
use linerate_measure::record::Stopped;
use linerate_measure::summary::summarise;
use std::collections::BTreeSet;

#[test]
fn every_figure_is_there_once_and_its_place_is_documented() {
    for own in [&TRIAL[..], &CELL[..]] {
        let names: Vec<&str> = CAMPAIGN
            .iter()
            .chain(&COMMON)
            .chain(own)
            .map(|figure| figure.name)
            .collect();
        assert_eq!(
            names.iter().collect::<BTreeSet<_>>().len(),
            names.len(),
            "{names:?}"
        );
    }
    let campaign = Campaign {
        slots: vec![Slot::default()],
        ..Campaign::default()
    };
    let summary = summarise(&campaign, &[TrialRecord::default()], Stopped::Trials, 0);
    let row = serde_json::to_value(&summary.rows[0]).unwrap();
    let document = include_str!("../../../../docs/records.md");
    let (_, rows) = document.split_once("A **row**:").unwrap();
    for figure in CELL.iter() {
        let Source::Row(place) = figure.source else {
            continue;
        };
        let field = place.split('/').nth(1).unwrap();
        assert!(row.get(field).is_some(), "{place} is no field of a row");
        assert!(
            rows.contains(&format!("`{field}`")),
            "docs/records.md does not have {field}"
        );
    }
}
