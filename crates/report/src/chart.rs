//! Pictures of figures, independent of their format.

use linerate_stats::Estimate;
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
    /// Meaning of an interval: `95 % interval of the median`.
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
    /// Numbers by their ratio; 0 stands a decade below the least of the others.
    Log,
    /// Names, one below the other: point number n stands at n.
    Names(Vec<String>),
    /// Names in an order, such as revisions, along the axis: point number n stands at n.
    Order(Vec<String>),
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
    /// A part of the axis, from the first point to the last, shaded over the whole height.
    Span,
    /// A row of cells, whose colours are the figures. All series of a chart have this look, or none.
    Cells,
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

impl Spot {
    /// A figure alone.
    pub fn at(x: f64, y: f64) -> Spot {
        Spot {
            x,
            y,
            interval: None,
            trials: Vec::new(),
        }
    }

    /// An estimate with the trials behind it, in a unit of so many.
    pub fn of(x: f64, rate: &Estimate, trials: impl IntoIterator<Item = f64>, scale: f64) -> Spot {
        Spot {
            x,
            y: rate.median / scale,
            interval: rate
                .low
                .zip(rate.high)
                .map(|(low, high)| [low / scale, high / scale]),
            trials: trials.into_iter().map(|trial| trial / scale).collect(),
        }
    }
}

impl Series {
    pub fn new(
        name: impl Into<String>,
        look: Look,
        points: impl IntoIterator<Item = Spot>,
    ) -> Series {
        Series {
            name: name.into(),
            look,
            points: points.into_iter().collect(),
        }
    }
}

impl Axis {
    pub fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis {
            label: label.into(),
            scale,
        }
    }

    /// An axis whose scale begins near the least figure.
    pub fn free(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::Linear { from_zero: false })
    }

    /// Lengths that are compared.
    pub fn from_zero(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::Linear { from_zero: true })
    }
}

/// The least and the greatest of these values; `None` without any.
pub(crate) fn ends(values: impl IntoIterator<Item = f64>) -> Option<[f64; 2]> {
    values
        .into_iter()
        .map(|value| [value; 2])
        .reduce(|[low, high], [value, _]| [low.min(value), high.max(value)])
}

/// The meaning of most intervals.
const OF_MEDIANS: &str = "95 % interval of the median";

impl Chart {
    pub fn new(title: impl Into<String>, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
        Chart {
            title: title.into(),
            x,
            y,
            series,
            interval: None,
        }
    }

    /// The chart, whose points have intervals of medians.
    pub fn of_medians(self) -> Chart {
        Chart {
            interval: Some(OF_MEDIANS.into()),
            ..self
        }
    }

    /// The parts of both axes that have all points; `None` without points.
    pub(crate) fn extents(&self) -> Option<[Extent; 2]> {
        let spots = |spans: bool| {
            let shown = self
                .series
                .iter()
                .filter(move |series| spans || series.look != Look::Span);
            shown.flat_map(|series| &series.points)
        };
        let of = |spot: &Spot| {
            let ends = spot.interval.into_iter().flatten();
            ends.chain(spot.trials.iter().copied())
                .chain([spot.y])
                .collect::<Vec<f64>>()
        };
        let x = Extent::of(&self.x.scale, spots(true).map(|spot| spot.x))?;
        Some([x, Extent::of(&self.y.scale, spots(false).flat_map(of))?])
    }

    /// Whether it has rows of cells.
    pub(crate) fn is_of_cells(&self) -> bool {
        self.series.iter().any(|series| series.look == Look::Cells)
    }

    /// The chart with so few figures that a page has room for them, and by how many each of its own stands for the others; `None` where
    /// it has few. Of neighbouring points stay the least and the greatest, and of a point's trials the ends and those between at even
    /// ranks.
    pub(crate) fn thinned(&self) -> Option<(Chart, usize)> {
        let all: usize = self
            .series
            .iter()
            .flat_map(|series| &series.points)
            .map(|spot| 1 + spot.trials.len())
            .sum();
        let each = all.div_ceil(MOST_FIGURES);
        if each < 2 {
            return None;
        }
        let mut thin = self.clone();
        for series in &mut thin.series {
            if series.points.len() > FEW_FIGURES {
                let ends = |of: &[Spot]| {
                    let by_y = |a: &&Spot, b: &&Spot| a.y.total_cmp(&b.y);
                    let [least, greatest] = [of.iter().min_by(by_y), of.iter().max_by(by_y)];
                    least
                        .into_iter()
                        .chain(greatest.filter(|_| of.len() > 1))
                        .cloned()
                        .collect::<Vec<_>>()
                };
                series.points = series.points.chunks(2 * each).flat_map(ends).collect();
            }
            for spot in &mut series.points {
                if spot.trials.len() > FEW_FIGURES {
                    spot.trials.sort_by(f64::total_cmp);
                    let last = spot.trials.len() - 1;
                    let some = (last / each).max(1);
                    spot.trials = (0..=some).map(|n| spot.trials[n * last / some]).collect();
                }
            }
        }
        Some((thin, each))
    }
}

/// Figures of a picture that a page has room for.
const MOST_FIGURES: usize = 4_000;
/// Figures of a series or a point that always have room.
const FEW_FIGURES: usize = 100;

/// The part of an axis that a picture shows.
#[derive(Clone)]
pub(crate) struct Extent {
    pub range: Range<f64>,
    /// Whether it goes by ratios.
    pub log: bool,
    /// The least number above 0, on an axis of ratios that has 0, too.
    pub zero: Option<f64>,
    /// Names from the high end downwards: number n stands at -n.
    pub names: Vec<String>,
    /// Names along it: number n stands at n.
    pub order: Vec<String>,
}

impl Extent {
    /// The axis of these names.
    pub fn of_names(names: Vec<String>) -> Extent {
        Extent {
            range: 0.5 - names.len().max(1) as f64..0.5,
            log: false,
            zero: None,
            names,
            order: Vec::new(),
        }
    }

    /// The axis of these values; `None` without one that can be drawn.
    fn of(scale: &Scale, values: impl Iterator<Item = f64>) -> Option<Extent> {
        let log = *scale == Scale::Log;
        let (mut zero, mut values) = (false, values.collect::<Vec<f64>>());
        values.retain(|value| {
            zero |= *value == 0.0;
            value.is_finite() && (!log || *value > 0.0)
        });
        let [low, high] = ends(values)?;
        let range = match scale {
            Scale::Names(names) => return Some(Extent::of_names(names.clone())),
            Scale::Order(_) => low - 0.5..high + 0.5,
            Scale::Log if zero => 0.0..high * 1.15,
            Scale::Log => low / 1.15..high * 1.15,
            Scale::Percent => 0.0..100.0,
            Scale::Linear { from_zero: true } if high <= 0.0 => low.min(0.0)..1.0,
            Scale::Linear { from_zero: true } => low.min(0.0)..(high * 1.05).min(f64::MAX),
            Scale::Linear { from_zero: false } => {
                let room = (0.05 * (high - low))
                    .max(1e-9 * high.abs())
                    .max(f64::MIN_POSITIVE);
                low - room..high + room
            }
        };
        let order = if let Scale::Order(names) = scale {
            names.clone()
        } else {
            Vec::new()
        };
        Some(Extent {
            range,
            log,
            zero: (log && zero).then_some(low),
            names: Vec::new(),
            order,
        })
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        let Range { start, end } = self.range;
        match (self.log, self.zero) {
            (true, Some(least)) => {
                let decades = |value: f64| {
                    if value > 0.0 {
                        (value / least).log10()
                    } else {
                        -1.0
                    }
                };
                (decades(value) + 1.0 + BESIDE_ZERO) / (decades(end) + 1.0 + BESIDE_ZERO)
            }
            (true, None) => (value / start).ln() / (end / start).ln(),
            (false, _) => (value - start) / (end - start),
        }
    }
}

/// Decades on the other side of 0, on an axis of ratios.
const BESIDE_ZERO: f64 = 0.06;
