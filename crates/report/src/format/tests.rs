//! One page in every format.

use super::*;
use crate::chart::{Axis, Chart, Look, Scale, Series, Spot};
use crate::document::{Block, Cell, Document, Link, Table, Tone};
use expect_test::expect;
use std::collections::BTreeSet;

fn page() -> Document {
    let mut page = Document::default();
    page.paragraph("SIMULATED, not measured", Tone::Warning);
    page.gap();
    page.paragraph("nft_stateful is 31 % slower", Tone::Strong);
    let interval = Cell::Interval {
        low: 0.68012,
        high: 0.7,
        text: "0.680..0.700".into(),
    };
    let rows = [
        ("forwarding, \"plain\"", Some(1.00049), interval),
        ("=1|2", None, "too few".into()),
    ];
    page.table(
        Table::of(rows)
            .column("cell", "", |row| row.0)
            .column("rate", "Mpps", |row| {
                row.1.map(|value| Cell::Number {
                    value,
                    text: "1.000".into(),
                })
            })
            .column("95 %", "interval", |row| row.2.clone())
            .if_any("of it", "DUT", |_| None::<Cell>)
            .optional("", "rate", |row| Cell::Bar {
                share: if row.1.is_some() { 1.0 } else { 0.0 },
            }),
    );
    page.heading("How");
    page.item("mode     ", "inline", Tone::Plain);
    page.item("- ", "a note", Tone::Note);
    page.code("  linerate show", Tone::Plain);
    page
}

#[test]
fn every_format_draws_all_that_is_said() {
    let drawn = |name: &str| {
        let format = FORMATS
            .iter()
            .find(|format| format.name() == name)
            .expect("a format");
        format.render(
            &page(),
            Style {
                color: false,
                width: 80,
            },
        )
    };
    expect![[r#"
        SIMULATED, not measured

        nft_stateful is 31 % slower

        cell                  rate          95 %
                              Mpps      interval  rate
        forwarding, "plain"  1.000  0.680..0.700  ########################
        =1|2                     -       too few

        How
        mode     inline
        - a note
          linerate show
    "#]]
    .assert_eq(&drawn("text"));
    expect![[r#"
        **Warning:** SIMULATED, not measured

        **nft\_stateful is 31 % slower**

        | cell | rate Mpps | 95 % interval | rate |
        | :-- | --: | --: | --: |
        | forwarding, "plain" | 1.000 | 0.680..0.700 | ######################## |
        | =1\|2 | - | too few |  |

        ## How

        - mode: inline
        - _a note_

        ~~~
          linerate show
        ~~~
    "#]]
    .assert_eq(&drawn("markdown"));
    expect![[r#"
        section,tone,text
        ,warning,"SIMULATED, not measured"
        ,strong,nft_stateful is 31 % slower
        How,,mode inline
        How,note,a note

        section,cell,rate Mpps,rate Mpps 95 % interval low,rate Mpps 95 % interval high,rate
        ,"forwarding, ""plain""",1.00049,0.68012,0.7,1
        ,"'=1|2",,too few,,0
    "#]]
    .assert_eq(&drawn("csv").replace('\r', ""));
    let json: serde_json::Value = serde_json::from_str(&drawn("json")).unwrap();
    assert_eq!(
        json["blocks"][3]["columns"][1]["cells"][0]["value"],
        1.00049
    );
    assert_eq!(json["blocks"][3]["columns"][1]["head"][1], "Mpps");
    assert_eq!(
        json["blocks"].as_array().map(Vec::len),
        Some(page().blocks.len())
    );
    assert!(matches!(
        page().blocks[0],
        Block::Text {
            tone: Tone::Warning,
            ..
        }
    ));
}

/// Backticks that do not pair, or that a cell of a table would cut, are no code.
#[test]
fn commands_stay_code_in_markdown() {
    let drawn = |text: &str| {
        let mut page = Document::default();
        page.say(text);
        let style = Style {
            color: false,
            width: 80,
        };
        super::markdown::Markdown.render(&page, style)
    };
    for (text, expected) in [
        ("see `show my_dir` *now*", "see `show my_dir` \\*now\\*\n"),
        ("a `b", "a \\`b\n"),
        ("`a|b` ``", "\\`a\\|b\\` \\`\\`\n"),
    ] {
        assert_eq!(drawn(text), expected);
    }
}

#[test]
fn names_are_their_own() {
    let names: std::collections::BTreeSet<_> = FORMATS.iter().map(|f| f.name()).collect();
    assert_eq!(names.len(), FORMATS.len());
}

#[test]
fn a_record_commands_neither_terminal_nor_spreadsheet_nor_markdown() {
    let mut page = Document::default();
    page.paragraph("a\x1b[2J\n## b", Tone::Plain);
    page.table(Table::of(["=cmd()|x\x1b"]).column("x", "", |cell| *cell));
    for format in FORMATS {
        let text = format.render(&page, Style::default());
        assert!(
            text.chars()
                .all(|c| !c.is_control() || matches!(c, '\r' | '\n')),
            "{text:?}"
        );
        assert!(
            !text.contains("\n## b") && !text.contains("\n=cmd"),
            "{text:?}"
        );
    }
}

#[test]
fn links_lead_to_pages_of_the_same_site_only() {
    let mut page = Document::default();
    let to = |to: &str| Link::new("a <name>", to);
    page.links(vec![
        to("../sets/a-1.html"),
        to("javascript:alert(1)"),
        to("//host/x"),
        to("/etc/passwd"),
    ]);
    page.table(Table::of(["x.html", "https://host/"]).column("", "", |file| to(file)));
    let html = html::Html.render(&page, Style::default());
    let links = html
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    let leading: Vec<&str> = links.filter(|link| !link.starts_with("data:")).collect();
    assert_eq!(leading, ["../sets/a-1.html", "x.html"]);
    assert_eq!(html.matches("a &lt;name&gt;").count(), 6);
    let markdown = markdown::Markdown.render(&page, Style::default());
    assert!(
        markdown.contains(r"[a \<name\>](../sets/a-1.html) a \<name\>"),
        "{markdown}"
    );
    assert!(
        !markdown.contains("host") && !markdown.contains("alert"),
        "{markdown}"
    );
    assert!(
        Text.render(&page, Style::default())
            .contains("a <name> a <name>")
    );
}

/// The page of a chart, whose title is a script.
fn drawn(chart: Chart) -> String {
    let title = Some("<script>alert(1)</script>".into());
    html::Html.render(
        &Document {
            title,
            blocks: vec![Block::Chart(chart)],
        },
        Style::default(),
    )
}

fn chart(scale: Scale, points: Vec<Spot>) -> Chart {
    let axis = |label: &str, scale| Axis {
        label: label.into(),
        scale,
    };
    let name = "</svg><script>alert(2)</script>";
    let interval = Some("95 % interval".into());
    let series =
        [Look::Line, Look::Marks, Look::Bars, Look::Limit, Look::Span].map(|look| Series {
            name: name.into(),
            look,
            points: points.clone(),
        });
    let y = axis("\" onload=\"alert(3)", Scale::Linear { from_zero: true });
    Chart {
        title: name.into(),
        x: axis(name, scale),
        y,
        series: series.into(),
        interval,
    }
}

fn spot(x: f64, y: f64) -> Spot {
    Spot {
        x,
        y,
        interval: Some([y - 1.0, y + 1.0]),
        trials: vec![y, f64::NAN, f64::INFINITY],
    }
}

#[test]
fn nothing_in_a_page_is_loaded_or_run() {
    let names = || Scale::Names((0..200).map(|n| format!("<b>{n}</b>")).collect());
    for chart in [
        chart(
            names(),
            (0u32..200).map(|n| spot(f64::from(n), 5.0)).collect(),
        ),
        chart(
            Scale::Log,
            vec![spot(0.0, 1.0), spot(1.0, 1.0), spot(1e6, f64::NAN)],
        ),
        chart(Scale::Linear { from_zero: false }, vec![spot(3.0, 0.0)]),
        chart(
            Scale::Linear { from_zero: true },
            vec![spot(f64::NAN, 1.0), spot(f64::MAX, f64::MIN)],
        ),
        chart(Scale::Linear { from_zero: true }, Vec::new()),
    ] {
        let page = drawn(chart);
        assert!(page.contains("default-src 'none'"), "{page}");
        assert_eq!(page.matches("<script").count(), 1, "the page's own: {page}");
        for what in [
            "<script>alert",
            "<b>",
            " onload=\"",
            "src=",
            "url(",
            "@import",
        ] {
            assert!(!page.contains(what), "{what} in {page}");
        }
    }
}

#[test]
fn a_picture_has_its_axes_its_marks_and_its_data() {
    let points = vec![spot(1.0, 10.0), spot(1000.0, 5.0)];
    let page = drawn(Chart {
        title: "Rate over rules".into(),
        ..chart(Scale::Log, points)
    });
    assert_eq!(page.matches("<svg").count(), 1);
    assert!(
        page.matches("<circle").count() >= 4 + 2,
        "trials of each series, and marks of the first"
    );
    for what in [
        "Rate over rules",
        "Strokes: 95 % interval. Dots: trials.",
        "download=\"data.csv\"",
        "%0D%0A",
    ] {
        assert!(page.contains(what), "{what} in {page}");
    }
}

#[test]
fn no_two_labels_of_an_axis_are_the_same() {
    let labels = |from_zero, low: f64, high: f64| -> Vec<String> {
        let spots = [low, high].map(|y| Spot::at(1.0 + y, y));
        let series = vec![Series::new("", Look::Line, spots)];
        let [x, y] = [Scale::Log, Scale::Linear { from_zero }].map(|scale| Axis::new("", scale));
        let picture = html::svg::svg(&Chart::new("", x, y, series)).unwrap();
        let texts = picture.split("<text").skip(1);
        let labels = texts.filter(|text| text.contains("text-anchor=\"end\""));
        labels
            .filter_map(|text| text.split(&['>', '<'][..]).nth(1))
            .map(|label| label.trim().to_string())
            .collect()
    };
    assert_eq!(
        labels(true, 0.0, 0.002),
        ["0", "0.0005", "0.001", "0.0015", "0.002"]
    );
    for (low, high) in [
        (0.0, 0.009),
        (0.0, 1.5e-7),
        (0.1, 0.101),
        (14_880_000.0, 14_881_000.0),
        (0.0, 1e9),
    ] {
        let labels = labels(low == 0.0, low, high);
        let different: BTreeSet<&String> = labels.iter().collect();
        assert!(labels.len() > 2, "{labels:?}");
        assert_eq!(different.len(), labels.len(), "{labels:?}");
    }
}

#[test]
fn a_million_trials_make_no_larger_picture() {
    let mut points = vec![spot(1.0, 10.0)];
    points[0].trials = vec![10.0; 1_000_000];
    let page = drawn(chart(Scale::Linear { from_zero: true }, points));
    assert!(
        page.matches("<circle").count() < 5000 && page.len() < 1_000_000,
        "{}",
        page.len()
    );
}

#[test]
fn a_million_points_make_a_page_that_says_how_many_it_shows() {
    let points: Vec<Spot> = (0..1_000_000u32)
        .map(|n| Spot {
            x: f64::from(n),
            y: if n == 5 { 9.0 } else { 1.0 },
            interval: None,
            trials: Vec::new(),
        })
        .collect();
    let mut chart = chart(Scale::Linear { from_zero: true }, Vec::new());
    chart.series.truncate(1);
    chart.series[0].points = points;
    let page = drawn(chart);
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(
        page.contains("have one in 250 of its figures, with the least and the greatest"),
        "{page}"
    );
    assert!(
        page.contains("%225%22,9,"),
        "the point that differs is kept"
    );
}

#[test]
fn cells_have_colours_by_their_figures_and_spans_none() {
    let cells = |name: &str, share: f64| Series {
        name: name.into(),
        look: Look::Cells,
        points: [1.0, 2.0, 3.0]
            .map(|x| Spot {
                x,
                y: share * x,
                interval: None,
                trials: Vec::new(),
            })
            .into(),
    };
    let mut map = chart(Scale::Linear { from_zero: false }, Vec::new());
    map.series = vec![
        cells("queue 0", 0.0),
        cells("queue 1", 30.0),
        cells("queue 2", f64::NAN),
    ];
    let page = drawn(map);
    assert!(
        page.contains("#00204D") && page.contains("queue 1"),
        "{page}"
    );
    assert_eq!(
        page.matches("<rect").count(),
        6,
        "cells that are no number are not drawn"
    );
    let span = Series {
        name: "warm-up".into(),
        look: Look::Span,
        ..cells("", 1e9)
    };
    let mut spanned = chart(Scale::Linear { from_zero: true }, vec![spot(2.0, 5.0)]);
    spanned.series.push(span);
    let [_, y] = spanned.extents().unwrap();
    assert!(y.range.end < 10.0, "a span has no height of its own");
    assert!(drawn(spanned).contains("warm-up"));
}

#[test]
fn nothing_stands_beside_the_ratios() {
    let chart = chart(
        Scale::Log,
        [0.0, 1.0, 10.0, 10_000.0].map(|x| spot(x, 5.0)).into(),
    );
    let [x, _] = chart.extents().unwrap();
    let places = [0.0, 1.0, 10.0, 10_000.0].map(|value| x.share(value));
    assert!(
        places.is_sorted() && places[0] > 0.0 && places[3] < 1.0,
        "{places:?}"
    );
    assert!(
        (places[2] - places[1] - (places[1] - places[0])).abs() < 1e-9,
        "a decade each: {places:?}"
    );
    let page = drawn(chart);
    for label in ["0", "1", "100", "10000"] {
        assert!(
            page.contains(&format!(">\n{label}\n<")),
            "{label} in {page}"
        );
    }
}

#[test]
fn charts_are_drawn_as_text_where_both_axes_have_numbers() {
    let points = vec![spot(0.0, 100.0), spot(50.0, 0.0), spot(100.0, f64::NAN)];
    let of = |scale| {
        let mut chart = chart(scale, points.clone());
        chart.series.drain(1..3);
        chart.series[0].name = "loss\u{1b}[31m".into();
        chart.y.scale = Scale::Percent;
        (chart.x.label, chart.y.label, chart.title) =
            ("load, %".into(), "loss, %".into(), "Loss".into());
        Document {
            title: None,
            blocks: vec![Block::Chart(chart)],
        }
    };
    let text = of(Scale::Percent).text(Style {
        color: false,
        width: 40,
    });
    assert!(!text.contains('\u{1b}'));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Loss");
    assert_eq!(lines[1], "100 |-", "{text}");
    assert_eq!(lines[13], format!("  0 |{}-", " ".repeat(17)), "{text}");
    assert!(text.contains("x: load, %; y: loss, %"), "{text}");
    assert_eq!(
        of(Scale::Names(vec!["a".into()]))
            .text(Style::default())
            .trim(),
        ""
    );
}

#[test]
fn rows_and_columns_of_csv_say_what_they_are() {
    let mut page = Document::default();
    page.table(
        Table::of([
            (" 2 forwarding", 67.2 / 100.0 * 10.0, 2200.0),
            ("   simple IMIX", 100.0 * 0.7 * 100.0 / 100.0, 0.0),
        ])
        .column("cell", "", |(name, ..)| *name)
        .column("differ-", "ence", |(_, share, _)| {
            Cell::number(*share, "6.7")
        })
        .column("mixed", "", |(_, share, ns)| match *ns {
            0.0 => Cell::number(*share, "7 cycles"),
            ns => Cell::number(ns, "2.2 us"),
        })
        .column("p50", "", |(.., ns)| {
            Cell::number(*ns, crate::pages::numbers::time(*ns))
        }),
    );
    let text = super::csv::Csv
        .render(&page, Style::default())
        .replace('\r', "");
    let rows = [
        "section,cell,difference,mixed,p50 ns",
        ",2 forwarding,6.72,2200,2200",
        ",2 forwarding: simple IMIX,70,70,0",
    ];
    assert_eq!(text, format!("{}\n", rows.join("\n")));
}

/// A change is a figure where its interval excludes none, and else the interval alone.
#[test]
fn a_column_with_figures_and_intervals_has_a_head_for_each() {
    let mut page = Document::default();
    page.table(
        Table::of([
            (9.0, Cell::number(-40.0, "-40")),
            (8.0, Cell::range(-1.0, 2.0, "-1..2")),
        ])
        .column("rate", "kpps", |(rate, _)| Cell::number(*rate, "9"))
        .column("95 %", "interval", |(rate, _)| {
            Cell::range(rate - 1.0, rate + 1.0, "")
        })
        .column("by flood", "%", |(_, change)| change.clone())
        .column("of most", "%", |_| Cell::range(1.0, 2.0, "")),
    );
    let text = super::csv::Csv
        .render(&page, Style::default())
        .replace('\r', "");
    let rows = [
        "section,rate kpps,rate kpps 95 % interval low,rate kpps 95 % interval high,by flood %,by flood % low,by flood % high,of most % low,of most % high",
        ",9,8,10,-40,,,1,2",
        ",8,7,9,,-1,2,1,2",
    ];
    assert_eq!(text, format!("{}\n", rows.join("\n")));
}
