//! Charts as SVG, by plotters. Colours are attributes, which the page's style sheet exchanges in the dark.

use crate::chart::Extent;
use crate::prelude::*;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{
    BoldPoints, KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter,
};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// Okabe and Ito's colours, which colour-blind people tell apart; each series has a mark of its own as well.
const COLORS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];
const INK: RGBColor = RGBColor(27, 31, 36);
const GRID: RGBColor = RGBColor(208, 215, 222);
pub const WIDTH: u32 = 760;
const HEIGHT: u32 = 380;
/// Height of a name, and of the marks beside it.
const NAME_HEIGHT: u32 = 26;
/// Height of each of many names.
const LOW_NAME_HEIGHT: u32 = 16;
const MANY_NAMES: u32 = 60;
/// Height of one of several bars of a name.
const BAR_HEIGHT: u32 = 13;
/// Characters of a name.
const LONGEST_NAME: usize = 54;
/// Characters of a name along an axis, and so many of them have room.
const LONGEST_ORDERED: usize = 16;
const ORDERED: usize = 6;
/// Names of an axis that have room.
const MOST_NAMES: usize = 400;

/// Fewer labels of an axis do not tell where a point stands.
const FEW_TICKS: f64 = 3.0;
/// More have no room.
const MOST_TICKS: usize = 8;

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Extent, Extent>>;

impl Ranged for Extent {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        low + (self.share(*value).clamp(-1.0, 2.0) * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let Range { start, end } = self.range;
        if !self.order.is_empty() {
            let step = self.order.len().div_ceil(ORDERED).max(1);
            return (0..self.order.len())
                .step_by(step)
                .map(|at| at as f64)
                .collect();
        }
        if !self.names.is_empty() {
            return (0..self.names.len()).map(|at| -(at as f64)).collect();
        }
        let most = hint.max_num_points().max(2) as f64;
        if self.log {
            let start = self.zero.unwrap_or(start);
            let decades = (start.log10().floor() as i32)..=(end.log10().ceil() as i32);
            let within = |value: &f64| (start..=end).contains(value);
            let of = |steps: &'static [f64]| {
                let all = decades
                    .clone()
                    .flat_map(move |d| steps.iter().map(move |s| s * 10f64.powi(d)));
                all.filter(within).collect::<Vec<f64>>()
            };
            let [fine, coarse] = [of(&[1.0, 2.0, 5.0]), of(&[1.0])];
            match fine.len() as f64 {
                _ if self.zero.is_some() => return [vec![0.0], coarse].concat(),
                // A part of a decade: as without ratios.
                few if few < FEW_TICKS => {}
                some if some <= most => return fine,
                _ => return coarse,
            }
        }
        let rough = (end - start) / most.min(MOST_TICKS as f64);
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|s| s * power)
            .into_iter()
            .find(|s| *s >= rough)
            .unwrap_or(rough);
        let first = (start / step).ceil();
        (0..20)
            .map(|n| (first + f64::from(n)) * step)
            .take_while(|value| *value <= end)
            .collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Extent {
    fn format_ext(&self, value: &f64) -> String {
        if !self.order.is_empty() {
            return self
                .order
                .get(*value as usize)
                .map_or(String::new(), |name| {
                    name.chars().take(LONGEST_ORDERED).collect()
                });
        }
        let name = self.names.get(-*value as usize);
        match name {
            Some(name) => name.chars().take(LONGEST_NAME).collect(),
            None if *value == 0.0 => "0".into(),
            None if value.abs() >= 1e6 => self.figure(value / 1e6, 1e6) + "M",
            None => self.figure(*value, 1.0),
        }
    }
}

impl Extent {
    /// A number in units of `scale`, with the digits that tell it from the next label.
    fn figure(&self, value: f64, scale: f64) -> String {
        let step = (self.range.end - self.range.start) / MOST_TICKS as f64 / scale;
        let least = if self.log {
            step.min(value.abs())
        } else {
            step
        };
        let digits = (-least.log10().floor()).clamp(0.0, 15.0) as usize;
        let text = format!("{value:.digits$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').into(),
            false => text,
        }
    }
}

/// The mark of series number `number` as a character, and its colour.
pub fn key(series: &Series, number: usize) -> (char, String) {
    let color = match series.look {
        Look::Limit => INK,
        Look::Span => GRID,
        _ => COLORS[number % COLORS.len()],
    };
    let mark = match series.look {
        Look::Limit => ['\u{2500}', '\u{2504}'][number % 2],
        Look::Bars | Look::Span | Look::Cells => '\u{25a0}',
        Look::Line | Look::Marks => ['\u{25cf}', '\u{25b2}', '\u{25a0}', '\u{2715}'][number % 4],
    };
    (mark, hex(color))
}

/// Height of a chart; `None` if it has no point.
pub fn height(chart: &Chart) -> Option<u32> {
    let [x, _] = chart.extents()?;
    let rows = if chart.is_of_cells() {
        chart.series.len()
    } else {
        x.names.len()
    };
    let bars = most(&bars(chart)) as u32;
    Some(match rows as u32 {
        0 => HEIGHT,
        rows if rows > MANY_NAMES => 70 + LOW_NAME_HEIGHT * rows,
        rows => 70 + NAME_HEIGHT.max(BAR_HEIGHT * bars + 8) * rows,
    })
}

/// For each name with bars, by the bits of its place: the numbers of the series that have one.
fn bars(chart: &Chart) -> BTreeMap<u64, Vec<usize>> {
    let mut found: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, series) in chart
        .series
        .iter()
        .enumerate()
        .filter(|(_, s)| s.look == Look::Bars)
    {
        for spot in spots(series) {
            let beside = found.entry(spot.x.to_bits()).or_default();
            if beside.last() != Some(&number) {
                beside.push(number);
            }
        }
    }
    found
}

/// The points that can be drawn.
fn spots(series: &Series) -> impl Iterator<Item = &Spot> {
    series
        .points
        .iter()
        .filter(|spot| spot.x.is_finite() && spot.y.is_finite())
}

/// Most bars of a name.
fn most(bars: &BTreeMap<u64, Vec<usize>>) -> usize {
    bars.values().map(Vec::len).max().unwrap_or(0)
}

/// The picture; `None` if it has no point. Names stand at the left, one below the other, where they have room.
pub fn svg(chart: &Chart) -> Option<String> {
    let [x, y] = chart.extents()?;
    let height = height(chart)?;
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    if chart.is_of_cells() {
        cells(chart, x, &y, &area).ok()?
    } else {
        draw(chart, x, y, &area).ok()?
    }
    drop(area);
    Some(text)
}

/// A row for each series: the darker a cell, the smaller its figure, which stands in it where it has room.
fn cells(
    chart: &Chart,
    mut x: Extent,
    y: &Extent,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Drawn {
    let (places, half) = columns(chart);
    let Some([first, last]) = ends(places.iter().copied()) else {
        return Ok(());
    };
    x.range = first - half..last + half;
    let names: Vec<String> = chart
        .series
        .iter()
        .map(|series| series.name.clone())
        .collect();
    let mut context = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(44)
        .y_label_area_size(width_of(&names))
        .build_cartesian_2d(x, Extent::of_names(names))?;
    let text = || ("sans-serif", 15).into_font().color(&INK);
    let mut mesh = context.configure_mesh();
    mesh.disable_mesh()
        .axis_style(INK)
        .label_style(text())
        .axis_desc_style(text());
    mesh.x_desc(&chart.x.label)
        .x_labels(places.len().clamp(2, MOST_TICKS))
        .y_labels(MOST_NAMES)
        .draw()?;
    for (row, series) in chart.series.iter().enumerate() {
        for spot in spots(series) {
            let middle = -(row as f64);
            let corners = [
                (spot.x - half, middle - 0.46),
                (spot.x + half, middle + 0.46),
            ];
            context.draw_series([Rectangle::new(corners, shade(y.share(spot.y)).filled())])?;
            if places.len() <= WRITTEN_CELLS {
                let share = y.share(spot.y);
                let style =
                    ("sans-serif", 13)
                        .into_font()
                        .color(if share > 0.5 { &BLACK } else { &WHITE });
                let style = style.pos(Pos::new(HPos::Center, VPos::Center));
                context.draw_series([Text::new(
                    significant(spot.y, 3),
                    (spot.x, middle),
                    style,
                )])?;
            }
        }
    }
    area.present()?;
    Ok(())
}

/// The places of all cells, and half the width of a cell.
fn columns(chart: &Chart) -> (Vec<f64>, f64) {
    let mut places: Vec<f64> = chart
        .series
        .iter()
        .flat_map(|s| &s.points)
        .map(|spot| spot.x)
        .collect();
    places.retain(|at| at.is_finite());
    places.sort_by(f64::total_cmp);
    places.dedup();
    let gaps = places.windows(2).map(|two| two[1] - two[0]);
    let half = gaps.fold(f64::INFINITY, f64::min).min(1e12) / 2.0;
    let half = if places.len() > 1 { half } else { 0.5 };
    (places, half)
}

/// Room for names at the left.
fn width_of(names: &[String]) -> u32 {
    let longest = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    24 + 7 * longest.min(LONGEST_NAME) as u32
}

/// Colours of cells with their figures, from the least to the greatest.
pub fn scale(chart: &Chart) -> Vec<(String, String)> {
    let Some([_, Extent { range, .. }]) = chart.extents() else {
        return Vec::new();
    };
    let step = |n: u32| {
        let share = f64::from(n) / 4.0;
        (
            hex(shade(share)),
            significant(range.start + share * (range.end - range.start), 2),
        )
    };
    (0..5).map(step).collect()
}

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Columns whose cells have room for figures.
const WRITTEN_CELLS: usize = 12;

/// The colour of a share of the axis, from dark blue to yellow: colour-blind people see its order, and so does a print without colours.
fn shade(share: f64) -> RGBColor {
    const STEPS: [[f64; 3]; 5] = [
        [0.0, 32.0, 77.0],
        [65.0, 77.0, 107.0],
        [124.0, 123.0, 120.0],
        [188.0, 175.0, 111.0],
        [255.0, 234.0, 70.0],
    ];
    let at = share.clamp(0.0, 1.0) * 4.0;
    let low = (at as usize).min(3);
    let part = |of: usize| {
        (STEPS[low][of] + (at - low as f64) * (STEPS[low + 1][of] - STEPS[low][of])) as u8
    };
    RGBColor(part(0), part(1), part(2))
}

fn draw(chart: &Chart, x: Extent, y: Extent, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
    let named = !x.names.is_empty();
    let labels = || y.key_points(BoldPoints(MOST_TICKS)).into_iter();
    let longest = labels().map(|at| y.format_ext(&at).len()).max();
    let margin = match named {
        true => width_of(&x.names),
        false => 64.max(30 + 8 * longest.unwrap_or(0) as u32),
    };
    let bounds = y.range.clone();
    let (across, up, titles) = if named {
        (y, x, [&chart.y.label, &chart.x.label])
    } else {
        (x, y, [&chart.x.label, &chart.y.label])
    };
    // A point of the first axis and of the second, as they lie on the page.
    let at = |x: f64, y: f64| if named { (y, -x) } else { (x, y) };
    let mut context = ChartBuilder::on(area)
        .margin(8)
        .margin_right(16)
        .x_label_area_size(44)
        .y_label_area_size(margin)
        .build_cartesian_2d(across, up)?;
    let text = || ("sans-serif", 15).into_font().color(&INK);
    let mut mesh = context.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(text());
    mesh.axis_desc_style(text())
        .x_desc(titles[0])
        .x_labels(MOST_TICKS);
    if named {
        mesh.disable_y_mesh().y_labels(MOST_NAMES)
    } else {
        mesh.disable_x_mesh().y_labels(MOST_TICKS).y_desc(titles[1])
    };
    mesh.draw()?;
    spans(&mut context, chart, &bounds, at)?;
    let bars = bars(chart);
    let width = 0.8 / most(&bars).max(1) as f64;
    let all = chart.series.iter().enumerate();
    for (number, series) in all.filter(|(_, series)| series.look != Look::Span) {
        let color = COLORS[number % COLORS.len()];
        let is_bar = series.look == Look::Bars;
        let ink = if is_bar || chart.series.len() == 1 {
            INK
        } else {
            color
        };
        for spot in spots(series) {
            // Bars of one name stand side by side, without room for those of other names.
            let beside = bars
                .get(&spot.x.to_bits())
                .filter(|_| is_bar)
                .map_or(&[][..], Vec::as_slice);
            let place = beside.iter().position(|bar| *bar == number);
            let middle = |place| place as f64 + 0.5 - beside.len() as f64 / 2.0;
            let x = spot.x + place.map_or(0.0, |place| width * middle(place));
            if is_bar {
                let [left, right] = [-0.45, 0.45].map(|half| x + half * width);
                let bar =
                    Rectangle::new([at(left, 0.0), at(right, spot.y)], color.mix(0.55).filled());
                context.draw_series([bar])?;
            }
            scatter(&mut context, spot, |y| at(x, y), [color, ink])?;
        }
        let path: Vec<(f64, f64)> = spots(series).map(|spot| at(spot.x, spot.y)).collect();
        stroke(&mut context, series.look, &path, number, color)?;
    }
    area.present()?;
    Ok(())
}

/// Parts of the axis, shaded between these bounds of the other one.
fn spans(
    context: &mut Plane<'_, '_>,
    chart: &Chart,
    bounds: &Range<f64>,
    at: impl Fn(f64, f64) -> (f64, f64),
) -> Drawn {
    for series in chart
        .series
        .iter()
        .filter(|series| series.look == Look::Span)
    {
        let places = series
            .points
            .iter()
            .map(|spot| spot.x)
            .filter(|x| x.is_finite());
        if let Some([from, to]) = ends(places) {
            let corners = [at(from, bounds.start), at(to, bounds.end)];
            context.draw_series([Rectangle::new(corners, GRID.mix(0.5).filled())])?;
        }
    }
    Ok(())
}

/// A figure's interval, and the trials behind it.
fn scatter(
    context: &mut Plane<'_, '_>,
    spot: &Spot,
    at: impl Fn(f64) -> (f64, f64),
    [color, ink]: [RGBColor; 2],
) -> Drawn {
    if let Some([low, high]) = spot.interval {
        context.draw_series([PathElement::new([at(low), at(high)], ink.stroke_width(2))])?;
    }
    let trials = spot.trials.iter().filter(|value| value.is_finite());
    context.draw_series(trials.map(|value| Circle::new(at(*value), 2, color.mix(0.6).filled())))?;
    Ok(())
}

/// The line, limit or marks of series number `number`.
fn stroke(
    context: &mut Plane<'_, '_>,
    look: Look,
    path: &[(f64, f64)],
    number: usize,
    color: RGBColor,
) -> Drawn {
    match look {
        Look::Line => {
            context.draw_series([PathElement::new(path, color.stroke_width(2))])?;
        }
        // Neighbouring limits differ in their strokes.
        Look::Limit if number % 2 == 1 => {
            context.draw_series([DashedPathElement::new(
                path.to_vec(),
                6,
                4,
                INK.stroke_width(1),
            )])?;
        }
        Look::Limit => {
            context.draw_series([PathElement::new(path, INK.stroke_width(1))])?;
        }
        Look::Marks | Look::Bars | Look::Span | Look::Cells => {}
    }
    if matches!(look, Look::Line | Look::Marks) {
        marks(context, path, number, color)
    } else {
        Ok(())
    }
}

/// Marks of series number `number`.
fn marks(
    context: &mut Plane<'_, '_>,
    points: &[(f64, f64)],
    number: usize,
    color: RGBColor,
) -> Drawn {
    for point in points {
        let at = EmptyElement::at(*point);
        match number % 4 {
            0 => drop(context.draw_series([at + Circle::new((0, 0), 5, color.filled())])?),
            1 => drop(context.draw_series([at + TriangleMarker::new((0, 0), 6, color.filled())])?),
            2 => drop(
                context.draw_series([at + Rectangle::new([(-4, -4), (4, 4)], color.filled())])?,
            ),
            _ => drop(context.draw_series([at + Cross::new((0, 0), 5, color.stroke_width(2))])?),
        }
    }
    Ok(())
}
