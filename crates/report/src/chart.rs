//! Pictures of figures, independent of their format.

use serde::Serialize;

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
