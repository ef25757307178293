//! The sections of the view: each is a table whose lines are made for a width and a height.

mod queues;

use super::{BAD, BOLD, DIM, GOOD, RX, Shown, TX, WARN, bar};
use linerate_measure::watch::{CpuRates, InterfaceRates, Moving, Rates};
use linerate_report::watch::scaled;
use linerate_wire::words::when;
use queues::queues;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

/// A part of the view.
pub struct Section<'a> {
    title: String,
    /// Lines without which it is not worth its place.
    pub least: usize,
    /// A line above all others, which is always shown.
    heading: bool,
    rows: Rows<'a>,
}

enum Rows<'a> {
    /// A line each.
    Lines(Box<dyn Fn(u16) -> Vec<Line<'static>> + 'a>),
    /// A line each, or, where there is no room for that, cells side by side, each at least so wide.
    Cells {
        count: usize,
        line: Of<'a>,
        cell: Of<'a>,
        narrowest: u16,
    },
}

/// A row for a width.
type Of<'a> = Box<dyn Fn(usize, u16) -> Line<'static> + 'a>;

impl Section<'_> {
    /// Lines that it would fill, without its title.
    pub fn need(&self, width: u16) -> usize {
        match &self.rows {
            Rows::Lines(lines) => lines(width).len(),
            Rows::Cells { count: 0, .. } => 0,
            Rows::Cells { count, .. } => count + usize::from(self.heading),
        }
    }

    pub fn title(&self, width: u16) -> Line<'static> {
        let rule = usize::from(width).saturating_sub(self.title.chars().count() + 1);
        Line::from(vec![
            Span::styled(self.title.clone(), BOLD),
            Span::styled(format!(" {}", "─".repeat(rule)), DIM),
        ])
    }

    /// Lines of the section, `height` at most. Those that find no room are counted in the last.
    pub fn lines(&self, width: u16, height: usize) -> Vec<Line<'static>> {
        let (lines, hidden): (Vec<Line<'static>>, usize) = match &self.rows {
            Rows::Lines(lines) => {
                let mut lines = lines(width);
                // Of one line the first is worth more than the number of the others.
                let hidden = if height > 1 && lines.len() > height {
                    lines.len() + 1 - height
                } else {
                    0
                };
                lines.truncate(height - usize::from(hidden > 0));
                (lines, hidden)
            }
            Rows::Cells {
                count,
                line,
                cell,
                narrowest,
            } => {
                let heading = usize::from(self.heading);
                if count + heading <= height {
                    // The heading is the line before the first.
                    let lines = (1 - heading..=*count).map(|nth| line(nth, width));
                    (lines.filter(|line| line.width() > 0).collect(), 0)
                } else {
                    let most = usize::from((width / narrowest).max(1));
                    let columns = count.div_ceil(height).clamp(2.min(most), most);
                    let of_cell = width / columns as u16;
                    let rows = count.div_ceil(columns).min(height);
                    let room = rows * columns;
                    // Of many cells the last says how many are left.
                    let shown = if room < *count { room - 1 } else { *count };
                    let of_row = |row: usize| {
                        // Numbers go down a column first.
                        let cells = (0..columns)
                            .map(|column| column * rows + row)
                            .filter(|nth| *nth < shown);
                        let spans = cells.flat_map(|nth| cell(nth + 1, of_cell).spans);
                        Line::from(spans.collect::<Vec<_>>())
                    };
                    let mut lines: Vec<Line<'static>> = (0..rows).map(of_row).collect();
                    if shown < *count
                        && let Some(last) = lines.last_mut()
                    {
                        last.push_span(Span::styled(format!("… {} more", count - shown), DIM));
                    }
                    (lines, 0)
                }
            }
        };
        let mut lines = lines;
        if hidden > 0 {
            lines.push(Line::styled(format!("… {hidden} more"), DIM));
        }
        lines
    }
}

/// All sections in the order of their importance.
pub fn all<'a>(shown: &'a Shown, rates: &'a Rates) -> [Section<'a>; 8] {
    [
        interfaces(shown, rates),
        queues(shown, rates),
        cpus(shown, rates),
        interrupts(rates),
        stack(rates),
        moved("Rules, frames/s", &rates.rules),
        moving(shown, rates),
        missing(rates),
    ]
}

fn section<'a>(
    title: impl Into<String>,
    least: usize,
    lines: impl Fn(u16) -> Vec<Line<'static>> + 'a,
) -> Section<'a> {
    Section {
        title: title.into(),
        least,
        heading: false,
        rows: Rows::Lines(Box::new(lines)),
    }
}

/// `1.42M`, at most five characters.
fn short(value: f64) -> String {
    let (number, prefix) = scaled(value);
    number + prefix
}

/// A number right-aligned; 0 is dim, and what means a loss is red.
fn figure(value: f64, width: usize, style: Style) -> Span<'static> {
    let style = if value == 0.0 { DIM } else { style };
    Span::styled(format!("{:>width$}", short(value)), style)
}

fn heading(text: String) -> Line<'static> {
    Line::styled(text, DIM)
}

/// The place of the interface whose queues are shown: that one, or the busiest.
pub fn selected(rates: &Rates, wanted: Option<usize>) -> Option<usize> {
    let busiest = || {
        let busy = |interface: &InterfaceRates| {
            (
                !interface.queues.is_empty(),
                !interface.stacked,
                interface.rx.pps + interface.tx.pps + interface.rx.drops,
            )
        };
        let compare = |a: &InterfaceRates, b: &InterfaceRates| {
            let (a, b) = (busy(a), busy(b));
            (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
        };
        // Of equals the first.
        let all = rates.interfaces.iter().enumerate().rev();
        all.max_by(|(_, a), (_, b)| compare(a, b))
            .map(|(nth, _)| nth)
    };
    wanted
        .filter(|nth| *nth < rates.interfaces.len())
        .or_else(busiest)
}

fn interfaces<'a>(shown: &'a Shown, rates: &'a Rates) -> Section<'a> {
    section("Interfaces", 4, move |width| {
        let chosen = selected(rates, shown.interface);
        let is_shown = |nth: &usize| {
            let interface = &rates.interfaces[*nth];
            chosen == Some(*nth)
                || interface.carrier != Some(false)
                || interface.rx.pps + interface.tx.pps > 0.0
        };
        let mut order: Vec<usize> = (0..rates.interfaces.len()).filter(is_shown).collect();
        let without_link = rates.interfaces.len() - order.len();
        let busy = |nth: &usize| rates.interfaces[*nth].rx.pps + rates.interfaces[*nth].tx.pps;
        // Idle ones come last in any case.
        order.sort_by(|a, b| {
            if shown.by_rate {
                busy(b).total_cmp(&busy(a))
            } else {
                (busy(a) == 0.0).cmp(&(busy(b) == 0.0))
            }
        });
        let wide = width >= 100;
        let layers = when(wide, format!("{:>9}{:>9}", "rx L1", "tx L1"));
        let mut lines = vec![heading(
            format!(
                "  {:<15}{:>8}{:>8}{layers}{:>9}{:>9}{:>9}{:>9}{:>8}",
                "", "rx pps", "tx pps", "rx L2", "tx L2", "rx drop", "tx drop", "errors"
            ) + when(wide, "  ring full   wire"),
        )];
        lines.extend(
            order
                .into_iter()
                .map(|nth| interface(&rates.interfaces[nth], chosen == Some(nth), wide)),
        );
        if without_link > 0 {
            lines.push(Line::styled(format!("  {without_link} without link"), DIM));
        }
        lines
    })
}

fn interface(of: &InterfaceRates, chosen: bool, wide: bool) -> Line<'static> {
    let mark = if chosen { "▸ " } else { "  " };
    let name: String = of.name.chars().take(14).collect();
    let down = of.carrier == Some(false);
    let style = if down {
        DIM
    } else if of.stacked {
        Style::new()
    } else {
        BOLD
    };
    let mut spans = vec![Span::raw(mark), Span::styled(format!("{name:<15}"), style)];
    if of.is_new {
        spans.push(Span::styled("new: rates follow", DIM));
        return Line::from(spans);
    }
    if down && of.rx.pps + of.tx.pps == 0.0 {
        spans.push(Span::styled("no link", DIM));
        return Line::from(spans);
    }
    spans.extend([figure(of.rx.pps, 8, RX), figure(of.tx.pps, 8, TX)]);
    if wide {
        spans.extend([
            figure(of.rx.bits_layer_1, 9, RX),
            figure(of.tx.bits_layer_1, 9, TX),
        ]);
    }
    spans.extend([
        figure(of.rx.bits_layer_2, 9, RX),
        figure(of.tx.bits_layer_2, 9, TX),
    ]);
    spans.extend([figure(of.rx.drops, 9, BAD), figure(of.tx.drops, 9, BAD)]);
    spans.push(figure(of.rx.errors + of.tx.errors, 8, BAD));
    if wide {
        spans.push(figure(of.rx.overruns, 11, BAD));
        let most = of.rx.bits_layer_1.max(of.tx.bits_layer_1);
        let share = of
            .speed
            .map(|speed| format!("{:>5.0} %", 100.0 * most / speed));
        spans.push(Span::styled(share.unwrap_or_default(), DIM));
    }
    Line::from(spans)
}

/// The parts of a CPU's time, their names and colours.
fn parts(cpu: &CpuRates) -> [(&'static str, f64, Color); 5] {
    [
        ("user", cpu.user, Color::Green),
        ("sys", cpu.system, Color::Blue),
        ("soft", cpu.softirq, Color::Red),
        ("irq", cpu.irq, Color::Magenta),
        ("steal", cpu.steal, Color::Yellow),
    ]
}

/// A bar of several colours.
fn parts_bar(cpu: &CpuRates, width: usize) -> Vec<Span<'static>> {
    let (mut spans, mut end, mut drawn) = (Vec::new(), 0.0, 0);
    for (_, share, color) in parts(cpu) {
        end += share;
        let until = ((end * width as f64).round() as usize).min(width);
        spans.push(Span::styled(
            "█".repeat(until.saturating_sub(drawn)),
            Style::new().fg(color),
        ));
        drawn = drawn.max(until);
    }
    spans.push(Span::styled("·".repeat(width - drawn), DIM));
    spans
}

fn cpus<'a>(shown: &'a Shown, rates: &'a Rates) -> Section<'a> {
    let mut order: Vec<&CpuRates> = rates.cpus.iter().collect();
    if shown.by_rate {
        order.sort_by(|a, b| b.busy().total_cmp(&a.busy()));
    }
    let of_cell = order.clone();
    let bars = |width: u16| usize::from(width).saturating_sub(6 + 6 * 6).max(4);
    Section {
        title: "CPUs, % of time".into(),
        least: 3,
        heading: true,
        rows: Rows::Cells {
            count: order.len(),
            line: Box::new(move |nth, width| match nth.checked_sub(1) {
                None => {
                    let names: String = parts(&CpuRates::default())
                        .iter()
                        .map(|(name, ..)| format!("{name:>6}"))
                        .collect();
                    heading(format!(
                        "{}{names}{:>6}",
                        " ".repeat(6 + bars(width)),
                        "idle"
                    ))
                }
                Some(nth) => {
                    let cpu = order[nth];
                    let mut spans = vec![busy_style(cpu, format!("{:>4}  ", cpu.cpu))];
                    spans.extend(parts_bar(cpu, bars(width)));
                    let shares =
                        parts(cpu).map(|(_, share, color)| (share, Style::new().fg(color)));
                    spans.extend(shares.into_iter().chain([(cpu.idle, Style::new())]).map(
                        |(share, style)| {
                            let percent = (100.0 * share).round();
                            Span::styled(
                                format!("{percent:>6.0}"),
                                if percent == 0.0 { DIM } else { style },
                            )
                        },
                    ));
                    Line::from(spans)
                }
            }),
            cell: Box::new(move |nth, width| {
                let cpu = of_cell[nth - 1];
                let mut spans = vec![busy_style(cpu, format!("{:>4} ", cpu.cpu))];
                spans.extend(parts_bar(cpu, usize::from(width).saturating_sub(10)));
                spans.push(Span::raw(format!("{:>4.0} ", 100.0 * cpu.busy())));
                Line::from(spans)
            }),
            narrowest: 16,
        },
    }
}

fn busy_style(cpu: &CpuRates, text: String) -> Span<'static> {
    Span::styled(
        text,
        if cpu.busy() >= 0.95 {
            BOLD.patch(BAD)
        } else {
            BOLD
        },
    )
}

fn interrupts(rates: &Rates) -> Section<'_> {
    section("Interrupts/s, and the CPUs where they come", 3, move |_| {
        rates
            .interrupts
            .iter()
            .map(|interrupt| {
                let mut by_cpu = interrupt.by_cpu.clone();
                by_cpu.sort_by(|a, b| b.1.total_cmp(&a.1));
                let all = by_cpu.len();
                let mut cpus: Vec<String> = by_cpu
                    .iter()
                    .take(4)
                    .map(|(cpu, n)| format!("{cpu}: {}", short(*n)))
                    .collect();
                if all > 4 {
                    cpus.push("…".into());
                }
                let name: String = interrupt.name.chars().take(24).collect();
                Line::from(vec![
                    Span::raw(format!("{name:<25}")),
                    figure(interrupt.per_second, 6, Style::new()),
                    Span::styled(format!("  {}", cpus.join("  ")), DIM),
                ])
            })
            .collect()
    })
}

/// The network stack's queues by CPU, and the table of connections.
fn stack(rates: &Rates) -> Section<'_> {
    section("Network stack", 1, move |width| {
        let busy = || {
            rates
                .softnet
                .iter()
                .filter(|softnet| softnet.processed + softnet.dropped > 0.0)
        };
        let mut spans = Vec::new();
        if let Some(states) = rates.states {
            let fill = states.fill();
            let style = if fill.is_some_and(|fill| fill >= 0.9) {
                BAD
            } else {
                GOOD
            };
            let bars = usize::from(width).saturating_sub(56).clamp(4, 30);
            spans.extend([
                Span::raw("connections "),
                Span::styled(bar(fill.unwrap_or(0.0), bars), style),
                Span::raw(format!(" {} of {}   ", states.entries, states.limit)),
            ]);
        }
        let (dropped, squeezed) = busy().fold((0.0, 0.0), |(dropped, squeezed), softnet| {
            (dropped + softnet.dropped, squeezed + softnet.squeezed)
        });
        if !rates.softnet.is_empty() {
            let named = |name: &str, value, style| {
                [
                    Span::raw(format!("{name} ")),
                    figure(value, 1, style),
                    Span::raw("   "),
                ]
            };
            spans.extend(
                named("dropped", dropped, BAD)
                    .into_iter()
                    .chain(named("squeezed", squeezed, WARN)),
            );
        }
        if spans.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![Line::from(spans)];
        if busy().next().is_some() {
            lines.push(heading(format!(
                "{:<8}{:>10}{:>10}{:>10}",
                "CPU", "packets", "dropped", "squeezed"
            )));
        }
        lines.extend(busy().map(|softnet| {
            Line::from(vec![
                Span::styled(format!("{:>4}    ", softnet.cpu), BOLD),
                figure(softnet.processed, 10, Style::new()),
                figure(softnet.dropped, 10, BAD),
                figure(softnet.squeezed, 10, WARN),
            ])
        }));
        lines
    })
}

fn moved<'a>(title: impl Into<String>, all: &'a [Moving]) -> Section<'a> {
    section(title, 2, move |_| {
        all.iter().map(|one| moved_line(&one.name, one)).collect()
    })
}

fn moved_line(name: &str, one: &Moving) -> Line<'static> {
    let is_loss = ["drop", "err", "discard", "miss", "fail", "no_", "invalid"]
        .iter()
        .any(|sign| name.to_ascii_lowercase().contains(sign));
    let style = if is_loss { BAD } else { Style::new() };
    Line::from(vec![
        figure(one.per_second, 7, style),
        Span::raw(format!("  {name}")),
    ])
}

/// Counters that moved: of the host, then of the drivers.
fn moving<'a>(shown: &'a Shown, rates: &'a Rates) -> Section<'a> {
    section("Counters that move, per second", 3, move |_| {
        let chosen = selected(rates, shown.interface);
        let mut lines: Vec<Line<'static>> = rates
            .moving
            .iter()
            .map(|one| moved_line(&one.name, one))
            .collect();
        // The chosen interface comes first.
        let mut interfaces: Vec<(usize, &InterfaceRates)> =
            rates.interfaces.iter().enumerate().collect();
        interfaces.sort_by_key(|(nth, _)| Some(*nth) != chosen);
        for (_, interface) in interfaces {
            lines.extend(
                interface
                    .moving
                    .iter()
                    .map(|one| moved_line(&format!("{} {}", interface.name, one.name), one)),
            );
        }
        lines
    })
}

fn missing(rates: &Rates) -> Section<'_> {
    section("Not shown", 1, move |_| {
        rates
            .missing
            .iter()
            .map(|why| Line::styled(why.clone(), DIM))
            .collect()
    })
}
