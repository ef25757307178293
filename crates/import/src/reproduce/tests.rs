use super::*;
use crate::netbenches::{Archive, ImportedSlot, Published, ResultDirectory, Run, Set};

fn archive(sets: &[(&str, &[f64])]) -> Archive {
    let mut archive = Archive::default();
    for (file, values) in sets {
        let (path, name) = file.rsplit_once('/').unwrap();
        let published = Published {
            file: (*file).into(),
            values: values.to_vec(),
            ..Published::default()
        };
        let set = Set {
            slot: ImportedSlot {
                set: name.trim_end_matches(".pps").into(),
                published: Some(published),
                ..ImportedSlot::default()
            },
            ..Set::default()
        };
        let directory = ResultDirectory {
            path: path.into(),
            sets: vec![set],
            ..ResultDirectory::default()
        };
        archive.directories.push(directory);
    }
    archive
}

const MAPPING: &str = "document = 'd'\nera = 'fb11'\n[[table]]\nillustration = '9'\ncaption = 'c'\ncolumns = ['a', 'b']\n";

fn of_row(row: &str, sets: &[(&str, &[f64])]) -> Vec<Figure> {
    let mapping =
        Mapping::read("m", &format!("{MAPPING}[[table.row]]\nsetup = 's'\n{row}")).unwrap();
    let mut evidence = Evidence::default();
    evidence.add(&archive(sets));
    reproduce(&mapping, &evidence).figures
}

const A: (&str, &[f64]) = ("m/c/t/results/l/a.pps", &[3.70e6, 3.74e6, 3.78e6]);
const B: (&str, &[f64]) = ("m/c/t/results/l/b.pps", &[3.60e6, 3.849e6, 4.2e6]);
const SOURCES: &str = "sources = ['m/c/t/results/l/a.pps', 'm/c/t/results/l/b.pps']\n";

#[test]
fn printed_figures_agree_are_cut_off_or_wrong() {
    let row =
        format!("printed = ['3.74 Mpps', '3.84 Mpps']\ndifference = 'No diff. proven'\n{SOURCES}");
    let states: Vec<State> = of_row(&row, &[A, B]).iter().map(|f| f.state).collect();
    assert_eq!(states, [State::Agrees, State::Truncated, State::Agrees]);
    let row = format!("printed = ['3.78 Mpps', '3.74 Mpps']\ndifference = '3% +/- 1%'\n{SOURCES}");
    let figures = of_row(&row, &[A, B]);
    assert!(
        figures.iter().all(|f| f.state == State::WrongInPrint),
        "{figures:?}"
    );
    let note = |i: usize| figures[i].note.clone().unwrap();
    assert!(
        note(0).contains(
            "the median is 3.7400 Mpps; the printed figure may be the maximum of the runs"
        )
    );
    assert!(
        note(1).contains("may be the median of m/c/t/results/l/a.pps"),
        "{}",
        note(1)
    );
    assert!(note(2).contains("No difference proven"), "{}", note(2));
}

#[test]
fn a_slip_of_the_last_digit_is_named() {
    let row = format!("printed = ['3.73 Mpps', '3.85 Mpps']\ndifference = 'No diff'\n{SOURCES}");
    let figures = of_row(&row, &[A, B]);
    let note = figures[0].note.as_deref().unwrap();
    assert!(note.contains("a slip in the last digit"), "{note}");
    assert!(
        note.contains("the printed difference was computed with the data"),
        "{note}"
    );
}

#[test]
fn without_data_nothing_is_judged() {
    let row = format!("printed = ['3.73 Mpps', '3.85 Mpps']\ndifference = 'No diff'\n{SOURCES}");
    let figures = of_row(&row, &[A]);
    let states: Vec<State> = figures.iter().map(|f| f.state).collect();
    assert_eq!(states, [State::WrongInPrint, State::NoData, State::NoData]);
    let figures = of_row("printed = ['1 Mpps', '2 Mpps']\nmissing = 'lost'", &[A]);
    assert!(
        figures
            .iter()
            .all(|f| f.state == State::NoData && f.note.as_deref() == Some("lost"))
    );
}

#[test]
fn runs_that_all_failed_are_a_zero_and_no_difference() {
    let none: (&str, &[f64]) = ("m/c/t/results/l/a.pps", &[]);
    let row = format!("printed = ['0 Mpps', '3.85 Mpps']\ndifference = 'NA'\n{SOURCES}");
    let states: Vec<State> = of_row(&row, &[none, B]).iter().map(|f| f.state).collect();
    assert_eq!(states, [State::Agrees; 3]);
}

#[test]
fn logs_stand_in_for_medians_that_were_never_committed() {
    let run = |median_pps| Run {
        median_pps,
        ..Run::default()
    };
    let mut set = Set {
        runs: vec![run(Some(1e6)), run(None), run(Some(2e6))],
        ..Set::default()
    };
    set.slot.set = "x".into();
    let directory = ResultDirectory {
        path: "m/c/t/results/l".into(),
        sets: vec![set],
        ..ResultDirectory::default()
    };
    let mut evidence = Evidence::default();
    evidence.add(&Archive {
        directories: vec![directory],
        ..Archive::default()
    });
    let found = evidence.get("m/c/t/results/l/x.pps").unwrap();
    assert_eq!(found, [1e6, 2e6]);
}

#[test]
fn a_block_is_held_against_every_era() {
    use linerate_stats::ministat::{Dataset, Options, block};
    let sets = [A, B].map(|(_, values)| Dataset::new("set", values.to_vec()));
    let text = block(
        &sets,
        &Options {
            era: Era::Fb11,
            separate_bars: true,
            ..Options::default()
        },
    );
    let judged = |text: &str, evidence: &Evidence| {
        let head = "document = 'd'\nera = 'fb11'\n[[block]]\nillustration = '5'\ncaption = 'c'\n";
        let mapping = Mapping::read(
            "m",
            &format!("{head}{SOURCES}printed = \"\"\"\n{text}\"\"\""),
        )
        .unwrap();
        let found = reproduce(&mapping, evidence);
        let wrong = found.count(State::WrongInPrint);
        (found.blocks[0].clone(), found.figures, wrong)
    };
    let mut evidence = Evidence::default();
    evidence.add(&archive(&[A, B]));
    let (whole, figures, wrong) = judged(&text, &evidence);
    assert_eq!(
        (wrong, whole.plot),
        (0, Some(PlotText::SameWithSeparateBars)),
        "{figures:?}"
    );
    assert!(whole.eras.contains(&"fb11".to_string()));
    let (whole, _, wrong) = judged(&text.replace("3740000", "3740001"), &evidence);
    assert_eq!(
        (wrong, whole.plot, whole.eras.len()),
        (2, Some(PlotText::Differs), 0),
        "median and average"
    );
    assert_eq!(whole.differing.len(), 1);
    let (whole, figures, _) = judged(&text, &Evidence::default());
    assert!(
        !whole.data && whole.eras.contains(&"fb11".to_string()),
        "{whole:?}"
    );
    assert_eq!(figures[0].state, State::NoData);
}
