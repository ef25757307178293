//! Pictures of figures, independent of their format.

use serde::Serialize;
use std::ops::Range;

/// Points over an axis, with their intervals and the trials behind them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// The statement or question that the picture belongs to.
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// What an interval means: `95 % interval of the median`.
    pub interval: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    pub scale: Scale,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Numbers; from 0 on where lengths are compared.
    Linear { from_zero: bool },
    /// From 0 to 100.
    Percent,
    /// Numbers above 0, by their ratio.
    Log,
    /// Names: point number n stands at n.
    Names(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    pub name: String,
    pub look: Look,
    pub points: Vec<Spot>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// Marks, joined by lines.
    Line,
    /// Marks alone.
    Marks,
    /// Bars from 0.
    Bars,
    /// A thin line without marks: a limit.
    Limit,
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spot {
    pub x: f64,
    pub y: f64,
    pub interval: Option<[f64; 2]>,
    /// The trials behind it.
    pub trials: Vec<f64>,
}

impl Chart {
    /// The parts of both axes that have all points; `None` without points.
    pub(crate) fn extents(&self) -> Option<[Extent; 2]> {
        let spots = || self.series.iter().flat_map(|series| &series.points);
        let of = |spot: &Spot| {
            let ends = spot.interval.into_iter().flatten();
            ends.chain(spot.trials.iter().copied()).chain([spot.y]).collect::<Vec<f64>>()
        };
        let x = Extent::of(&self.x.scale, spots().map(|spot| spot.x))?;
        Some([x, Extent::of(&self.y.scale, spots().flat_map(of))?])
    }
}

/// The part of an axis that a picture shows.
#[derive(Clone)]
pub(crate) struct Extent {
    pub range: Range<f64>,
    /// Whether it goes by ratios.
    pub log: bool,
    /// Names from the high end downwards: number n stands at -n.
    pub names: Vec<String>,
}

impl Extent {
    /// The axis of these values; `None` without one that can be drawn.
    fn of(scale: &Scale, values: impl Iterator<Item = f64>) -> Option<Extent> {
        let log = *scale == Scale::Log;
        let values = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], v| [l.min(v), h.max(v)]);
        if low > high {
            return None;
        }
        let (range, names) = match scale {
            Scale::Names(names) => (0.5 - names.len().max(1) as f64..0.5, names.clone()),
            Scale::Log => (low / 1.15..high * 1.15, Vec::new()),
            Scale::Percent => (0.0..100.0, Vec::new()),
            Scale::Linear { from_zero: true } => {
                (low.min(0.0)..(high * 1.05).max(f64::MIN_POSITIVE), Vec::new())
            }
            Scale::Linear { from_zero: false } => {
                let room = (0.05 * (high - low)).max(1e-9 * high.abs()).max(f64::MIN_POSITIVE);
                (low - room..high + room, Vec::new())
            }
        };
        Some(Extent { range, log, names })
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        match self.log {
            true => (value / start).ln() / (end / start).ln(),
            false => (value - start) / (end - start),
        }
    }
}
