//! The scales of pictures.

use super::{blocks, campaign, host};
use crate::chart::Scale;
use crate::document::Block;
use crate::pages::{Records, report};
use linerate_measure::record::Stopped;
use linerate_measure::summary::summarise;
use std::collections::BTreeMap;

/// The scale of the rates over rules, where the slowest are so many times as slow as the fastest.
fn scale(apart: f64) -> Scale {
    let campaign = campaign(plan!("rules"), false);
    let rate = |name: &str| match name.rsplit_once(' ').map_or("", |(_, level)| level) {
        "10000" => 1e6 / apart,
        _ => 1e6,
    };
    let trials = blocks(&campaign, rate);
    let page = report(&Records {
        campaign: &campaign,
        host: &host(),
        summary: &summarise(&campaign, &trials, Stopped::Budget, 0),
        trials: &trials,
        facts: &[],
        stacks: &BTreeMap::new(),
    });
    let rates = page.flat().into_iter().find_map(|block| match block {
        Block::Chart(chart) if chart.title == "Rate over rules" => Some(chart.y.scale.clone()),
        _ => None,
    });
    rates.unwrap()
}

#[test]
fn rates_that_are_far_apart_are_shown_by_their_ratio() {
    assert_eq!(scale(30.0), Scale::Log);
    assert_eq!(scale(10.0), Scale::Linear { from_zero: true });
}
