//! The view of a host: headline and limit, then sections in one, two or three columns.

mod sections;

use linerate_measure::watch::Rates;
use linerate_report::watch::{clock, headline, limit};
use linerate_wire::words::when;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use sections::Section;
use std::collections::VecDeque;

pub const DIM: Style = Style::new().fg(Color::DarkGray);
pub const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub const BAD: Style = Style::new().fg(Color::Red);
pub const WARN: Style = Style::new().fg(Color::Yellow);
pub const GOOD: Style = Style::new().fg(Color::Green);
pub const RX: Style = Style::new().fg(Color::Cyan);
pub const TX: Style = Style::new().fg(Color::Blue);

/// From this width on there are two columns, and three.
const TWO_COLUMNS: u16 = 116;
const THREE_COLUMNS: u16 = 176;
/// From this height on there are empty lines between sections.
const ROOMY: u16 = 26;
/// Lines of the head.
const HEAD: u16 = 4;

/// The part that is shown, and how.
#[derive(Debug, Default)]
pub struct Shown {
    /// The latest rates; `None` before there are two samples.
    pub rates: Option<Rates>,
    /// Frames/s that arrived, the latest last.
    pub history: VecDeque<f64>,
    /// Source of the samples: a host, a namespace or a file.
    pub name: String,
    pub paused: bool,
    /// The busiest queues, CPUs and interfaces first, instead of by number and name.
    pub by_rate: bool,
    /// The interface whose queues are shown, by its place; the busiest if `None`.
    pub interface: Option<usize>,
    pub help: bool,
}

/// The keys, and what they do.
const KEYS: [(&str, &str); 6] = [
    ("q", "quit"),
    ("space", "pause, and go on"),
    ("s", "sort by rate, or by number"),
    ("tab", "queues of the next interface"),
    ("b", "queues of the busiest interface"),
    ("?", "this help"),
];

impl Shown {
    /// Goes on to the next interface.
    pub fn next_interface(&mut self) {
        let many = self
            .rates
            .as_ref()
            .map_or(0, |rates| rates.interfaces.len());
        let now = self
            .rates
            .as_ref()
            .and_then(|rates| sections::selected(rates, self.interface));
        self.interface = now.filter(|_| many > 0).map(|now| (now + 1) % many);
    }
}

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, shown: &Shown) {
    let area = frame.area();
    if area.width < 20 || area.height < 6 {
        frame.render_widget(
            Paragraph::new("linerate watch: the terminal is too small"),
            area,
        );
        return;
    }
    let row = |y: u16| Rect {
        y: area.y + y,
        height: 1,
        ..area
    };
    frame.render_widget(title(shown, area.width), row(0));
    frame.render_widget(keys(), row(area.height - 1));
    let Some(rates) = &shown.rates else {
        frame.render_widget(Line::styled("Waiting for two samples …", DIM), row(2));
        return;
    };
    let text = headline(rates);
    let room = usize::from(area.width).saturating_sub(text.chars().count() + 4);
    let drops = rates.total.rx.drops + rates.total.tx.drops > 0.0;
    let style = if drops { BOLD.patch(BAD) } else { BOLD };
    let head = vec![
        Span::styled(text, style),
        Span::raw("   "),
        Span::styled(sparkline(&shown.history, room.min(60)), RX),
    ];
    frame.render_widget(Line::from(head), row(1));
    let style = if rates.limits.is_empty() { GOOD } else { WARN };
    frame.render_widget(
        Line::from(vec![
            Span::styled("Limit: ", BOLD),
            Span::styled(limit(rates), style),
        ]),
        row(2),
    );
    let more: Vec<String> = rates
        .limits
        .iter()
        .skip(1)
        .map(ToString::to_string)
        .collect();
    let more = when(!more.is_empty(), format!("also:  {}", more.join("; ")));
    frame.render_widget(Line::styled(more, DIM), row(3));
    body(
        frame,
        shown,
        rates,
        Rect {
            y: area.y + HEAD,
            height: area.height - HEAD - 1,
            ..area
        },
    );
    if shown.help {
        help(frame, area);
    }
}

fn title(shown: &Shown, width: u16) -> Line<'static> {
    let left = format!(" linerate watch  {}", shown.name);
    let state = when(shown.paused, "PAUSED  ");
    let right = match &shown.rates {
        Some(rates) => format!(
            "{state}every {:.1} s  {} ",
            rates.seconds,
            clock(rates.unix_ms)
        ),
        None => String::new(),
    };
    let gap = usize::from(width).saturating_sub(left.chars().count() + right.chars().count());
    Line::styled(
        format!("{left}{}{right}", " ".repeat(gap)),
        Style::new().add_modifier(Modifier::REVERSED),
    )
}

fn keys() -> Line<'static> {
    let short = [
        ("q", "quit"),
        ("space", "pause"),
        ("s", "sort"),
        ("tab", "next interface"),
        ("?", "help"),
    ];
    let key = |(key, what)| {
        [
            Span::styled(format!(" {key} "), BOLD),
            Span::styled(format!("{what} "), DIM),
        ]
    };
    Line::from(short.into_iter().flat_map(key).collect::<Vec<_>>())
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> = KEYS
        .into_iter()
        .map(|(key, what)| {
            Line::from(vec![
                Span::styled(format!(" {key:<6} "), BOLD),
                Span::raw(what),
            ])
        })
        .chain([
            Line::raw(""),
            Line::styled(" ▲ a queue with more than twice its fair share", WARN),
            Line::styled(" ▽ a queue that starves: less than a quarter of it", WARN),
        ])
        .collect();
    let (width, height) = (
        54.min(area.width),
        (lines.len() as u16 + 2).min(area.height),
    );
    let middle = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, middle);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" Keys ")),
        middle,
    );
}

fn body(frame: &mut Frame<'_>, shown: &Shown, rates: &Rates, area: Rect) {
    let [
        interfaces,
        queues,
        cpus,
        interrupts,
        stack,
        rules,
        moving,
        missing,
    ] = sections::all(shown, rates);
    match area.width {
        width if width >= THREE_COLUMNS => {
            let below = top(frame, interfaces, area);
            let [left, middle, right] = columns(below, [40, 32, 28]);
            stacked(frame, vec![queues], left);
            stacked(frame, vec![cpus, stack, missing], middle);
            stacked(frame, vec![interrupts, rules, moving], right);
        }
        width if width >= TWO_COLUMNS => {
            let below = top(frame, interfaces, area);
            let [left, right] = columns(below, [54, 46]);
            stacked(frame, vec![queues, moving, missing], left);
            stacked(frame, vec![cpus, stack, interrupts, rules], right);
        }
        _ => stacked(
            frame,
            vec![
                interfaces, queues, cpus, stack, interrupts, rules, moving, missing,
            ],
            area,
        ),
    }
}

/// The section over all columns, with a third of the lines at most; returns what is left.
fn top(frame: &mut Frame<'_>, section: Section<'_>, area: Rect) -> Rect {
    let height = (section.need(area.width) as u16 + 1).min(area.height / 3);
    stacked(frame, vec![section], Rect { height, ..area });
    let height = (height + 1).min(area.height);
    Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    }
}

/// Columns of these shares in percent, with a gap between them.
fn columns<const N: usize>(area: Rect, shares: [u16; N]) -> [Rect; N] {
    let mut x = area.x;
    shares.map(|share| {
        let width = (u32::from(area.width) * u32::from(share) / 100) as u16;
        let column = Rect {
            x,
            width: width.saturating_sub(2),
            ..area
        };
        x += width;
        column
    })
}

/// Sections under each other: a line for each in turn, until all have what they need or the area is full.
fn stacked(frame: &mut Frame<'_>, sections: Vec<Section<'_>>, area: Rect) {
    let sections: Vec<(usize, Section<'_>)> = sections
        .into_iter()
        .map(|section| (section.need(area.width), section))
        .filter(|(need, _)| *need > 0)
        .collect();
    let mut heights = vec![0; sections.len()];
    // A title goes with each, and an empty line where there is room. First what each needs at least, in the order of importance; then a
    // line each in turn.
    let gap = usize::from(area.height >= ROOMY);
    let mut left = usize::from(area.height) + gap;
    for (height, (need, section)) in heights.iter_mut().zip(&sections) {
        let least = section.least.min(*need);
        if left > least + gap {
            *height = least;
            left -= least + 1 + gap;
        }
    }
    let mut gave = true;
    while std::mem::take(&mut gave) {
        for (height, (need, _)) in heights.iter_mut().zip(&sections) {
            if (1..*need).contains(height) && left > 0 {
                *height += 1;
                left -= 1;
                gave = true;
            }
        }
    }
    let mut y = area.y;
    for ((_, section), height) in sections
        .iter()
        .zip(heights)
        .filter(|(_, height)| *height > 0)
    {
        let mut lines = vec![section.title(area.width)];
        lines.extend(section.lines(area.width, height));
        lines.truncate(height + 1);
        let room = area.bottom().saturating_sub(y);
        let count = (lines.len() as u16).min(room);
        frame.render_widget(
            Paragraph::new(lines),
            Rect {
                y,
                height: count,
                ..area
            },
        );
        y += count + gap as u16;
    }
}

/// The last values as bars of eight heights.
fn sparkline(history: &VecDeque<f64>, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = history.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        if most > 0.0 {
            BARS[((value / most * 7.0).round() as usize).min(7)]
        } else {
            BARS[0]
        }
    };
    history
        .iter()
        .skip(history.len().saturating_sub(width))
        .map(bar)
        .collect()
}

/// A bar of eighths of a character; `share` of `width` characters.
pub fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    // Something is not nothing.
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let text = "█".repeat(eighths / 8) + PARTS[eighths % 8];
    let length = text.chars().count();
    text + &" ".repeat(width.saturating_sub(length))
}

#[cfg(test)]
mod tests;
