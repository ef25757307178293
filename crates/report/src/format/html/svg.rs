//! Charts as SVG, by plotters. Colours are attributes, which the page's style sheet exchanges in the dark.

use crate::chart::{Chart, Extent, Look, Series};
use crate::pages::numbers::significant;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
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
const WIDTH: u32 = 760;
const HEIGHT: u32 = 380;
/// Height of a name, and of the marks beside it.
const NAME_HEIGHT: u32 = 26;
/// Characters of a name.
const LONGEST_NAME: usize = 44;
/// Trials of a point that are drawn.
const MOST_TRIALS: usize = 200;
/// Names of an axis that have room.
const MOST_NAMES: usize = 400;

type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Ranged for Extent {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        low + (self.share(*value).clamp(-1.0, 2.0) * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let Range { start, end } = self.range;
        if !self.names.is_empty() {
            return (0..self.names.len()).map(|at| -(at as f64)).collect();
        }
        let most = hint.max_num_points().max(2) as f64;
        if self.log {
            let decades = (start.log10().floor() as i32)..=(end.log10().ceil() as i32);
            let within = |value: &f64| (start..=end).contains(value);
            let of = |steps: &'static [f64]| {
                let all = decades.clone().flat_map(move |d| steps.iter().map(move |s| s * 10f64.powi(d)));
                all.filter(within).collect::<Vec<f64>>()
            };
            let [fine, coarse] = [of(&[1.0, 2.0, 5.0]), of(&[1.0])];
            return if fine.len() as f64 <= most { fine } else { coarse };
        }
        let rough = (end - start) / most.min(8.0);
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let first = (start / step).ceil();
        (0..20).map(|n| (first + f64::from(n)) * step).take_while(|value| *value <= end).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Extent {
    fn format_ext(&self, value: &f64) -> String {
        let name = self.names.get(-*value as usize);
        match name {
            Some(name) => name.chars().take(LONGEST_NAME).collect(),
            None if *value == 0.0 => "0".into(),
            None if value.abs() >= 1e6 => format!("{}M", significant(value / 1e6, 3).trim_end_matches(".00")),
            None => {
                let text = format!("{:.3}", value);
                text.trim_end_matches('0').trim_end_matches('.').into()
            }
        }
    }
}

/// The mark of series number `number` as a character, and its colour.
pub fn key(series: &Series, number: usize) -> (char, String) {
    let RGBColor(red, green, blue) = COLORS[number % COLORS.len()];
    let mark = match series.look {
        Look::Limit => '\u{2500}',
        Look::Bars => '\u{25a0}',
        Look::Line | Look::Marks => ['\u{25cf}', '\u{25b2}', '\u{25a0}', '\u{2715}'][number % 4],
    };
    (mark, format!("#{red:02X}{green:02X}{blue:02X}"))
}

/// The picture; `None` if it has no point. Names stand at the left, one below the other, where they have room.
pub fn svg(chart: &Chart) -> Option<String> {
    let [x, y] = chart.extents()?;
    let height = match x.names.len() {
        0 => HEIGHT,
        names => 70 + NAME_HEIGHT * names as u32,
    };
    let mut text = String::new();
    let backend = SVGBackend::with_string(&mut text, (WIDTH, height));
    draw(chart, x, y, &backend.into_drawing_area()).ok()?;
    Some(text)
}

fn draw(chart: &Chart, x: Extent, y: Extent, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
    let named = !x.names.is_empty();
    let longest = x.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let margin = if named { 24 + 8 * longest.min(LONGEST_NAME) as u32 } else { 64 };
    let (across, up, titles) = match named {
        true => (y, x, [&chart.y.label, &chart.x.label]),
        false => (x, y, [&chart.x.label, &chart.y.label]),
    };
    // A point of the first axis and of the second, as they lie on the page.
    let at = |x: f64, y: f64| if named { (y, -x) } else { (x, y) };
    let mut context = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(44)
        .y_label_area_size(margin)
        .build_cartesian_2d(across, up)?;
    let text = || ("sans-serif", 15).into_font().color(&INK);
    let mut mesh = context.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(GRID).axis_style(INK).label_style(text());
    mesh.axis_desc_style(text()).x_desc(titles[0]).x_labels(8);
    match named {
        true => mesh.disable_y_mesh().y_labels(MOST_NAMES),
        false => mesh.disable_x_mesh().y_labels(8).y_desc(titles[1]),
    };
    mesh.draw()?;
    let bars: Vec<usize> =
        (0..chart.series.len()).filter(|at| chart.series[*at].look == Look::Bars).collect();
    for (number, series) in chart.series.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        let points = || series.points.iter().filter(|spot| spot.x.is_finite() && spot.y.is_finite());
        // Bars of one name stand side by side.
        let place = bars.iter().position(|bar| *bar == number);
        let width = 0.8 / bars.len().max(1) as f64;
        let shift = place.map_or(0.0, |place| width * (place as f64 + 0.5) - 0.4);
        for spot in points() {
            let x = spot.x + shift;
            if place.is_some() {
                let [left, right] = [-0.45, 0.45].map(|half| x + half * width);
                let bar = Rectangle::new([at(left, 0.0), at(right, spot.y)], color.mix(0.55).filled());
                context.draw_series([bar])?;
            }
            if let Some([low, high]) = spot.interval {
                let interval = PathElement::new([at(x, low), at(x, high)], INK.stroke_width(2));
                context.draw_series([interval])?;
            }
            let trials = spot.trials.iter().filter(|value| value.is_finite()).take(MOST_TRIALS);
            let dots = trials.map(|value| Circle::new(at(x, *value), 2, color.mix(0.6).filled()));
            context.draw_series(dots)?;
        }
        let path: Vec<(f64, f64)> = points().map(|spot| at(spot.x, spot.y)).collect();
        match series.look {
            Look::Line => {
                context.draw_series([PathElement::new(path.clone(), color.stroke_width(2))])?;
            }
            Look::Limit => {
                context.draw_series([PathElement::new(path.clone(), INK.stroke_width(1))])?;
            }
            Look::Marks | Look::Bars => {}
        }
        if matches!(series.look, Look::Line | Look::Marks) {
            marks(&mut context, &path, number, color)?;
        }
    }
    area.present()?;
    Ok(())
}

/// Marks of series number `number`.
fn marks<B: DrawingBackend>(
    context: &mut ChartContext<'_, B, Cartesian2d<Extent, Extent>>,
    points: &[(f64, f64)],
    number: usize,
    color: RGBColor,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    for point in points {
        let at = EmptyElement::at(*point);
        match number % 4 {
            0 => drop(context.draw_series([at + Circle::new((0, 0), 5, color.filled())])?),
            1 => drop(context.draw_series([at + TriangleMarker::new((0, 0), 6, color.filled())])?),
            2 => drop(context.draw_series([at + Rectangle::new([(-4, -4), (4, 4)], color.filled())])?),
            _ => drop(context.draw_series([at + Cross::new((0, 0), 5, color.stroke_width(2))])?),
        }
    }
    Ok(())
}
