use super::*;
use proptest::prelude::*;

fn runs(figures: &[f64]) -> Vec<Option<Medians>> {
    figures
        .iter()
        .map(|f| {
            Some(Medians {
                mean: *f,
                upper: *f + 0.5,
            })
        })
        .collect()
}

fn file(path: &str, values: &[f64]) -> Published {
    Published {
        file: path.into(),
        values: values.to_vec(),
        ..Published::default()
    }
}

fn logs(folder: &str, name: &str, config: Option<&str>) -> Logs {
    let facts = config
        .map(|config| (facts::CONFIG.to_string(), config.to_string()))
        .into_iter()
        .collect();
    let info = Info {
        facts,
        ..Info::default()
    };
    let profiling = folder.ends_with("PMC");
    Logs {
        folder: folder.into(),
        name: name.into(),
        profiling,
        info,
        ..Logs::default()
    }
}

/// Finds the medians of these sets, each with the figures of its runs.
fn found(sets: Vec<(Logs, &[f64])>, files: &[Published]) -> Vec<Option<Found>> {
    let (sets, figures): (Vec<Logs>, Vec<&[f64]>) = sets.into_iter().unzip();
    let candidates: Vec<Vec<Figures>> = figures
        .into_iter()
        .map(|figures| vec![runs(figures)])
        .collect();
    find(&sets, &candidates, "l", files)
}

fn paths<'a>(found: &[Option<Found>], files: &'a [Published]) -> Vec<Option<&'a str>> {
    found
        .iter()
        .map(|f| f.map(|f| files[f.file].file.as_str()))
        .collect()
}

#[test]
fn names_of_all_years() {
    let files = [
        file("l/a.pps", &[1.0]),
        file("l/a.1rx.pps", &[2.0]),
        file("l/bench.pps", &[3.0]),
        file("l/none.nobind", &[4.0]),
        file("l/285702.x", &[5.0]),
        file("l/pps.2", &[6.0]),
    ];
    let mut early = logs("l", "1.2", Some("nobind"));
    early
        .info
        .facts
        .insert(facts::IMAGE.into(), "BSDRP-285702-upgrade".into());
    let sets: Vec<(Logs, &[f64])> = vec![
        (logs("l/RAW.1rx", "a", None), &[2.0]),
        (logs("l/RAW", "a", None), &[1.0]),
        (logs("l/RAW", "", None), &[3.0]),
        (early, &[4.0]),
        (logs("l", "285702.x", None), &[5.5]),
        (logs("l", "2", None), &[6.0]),
        (logs("l/PMC", "a", None), &[1.0]),
    ];
    let found = found(sets, &files);
    let expected = [
        "l/a.1rx.pps",
        "l/a.pps",
        "l/bench.pps",
        "l/none.nobind",
        "l/285702.x",
        "l/pps.2",
    ]
    .map(Some);
    assert_eq!(paths(&found, &files), [&expected[..], &[None]].concat());
    assert_eq!(found[4].unwrap().agrees, None);
}

#[test]
fn renamed_medians_are_found_by_their_numbers_if_only_one_file_has_them() {
    let files = [
        file("l/r368766.inet4.pps", &[1.0, 2.0]),
        file("l/x.pps", &[3.0, 4.0]),
        file("l/y.pps", &[3.0, 4.0]),
    ];
    let sets: Vec<(Logs, &[f64])> = vec![
        (logs("l/RAW", "inet4", None), &[1.0, 2.0]),
        (logs("l/RAW", "inet6", None), &[3.0, 4.0]),
        (logs("l/RAW", "b", None), &[9.0]),
    ];
    let found = found(sets, &files);
    assert_eq!(
        paths(&found, &files),
        [Some("l/r368766.inet4.pps"), None, None]
    );
    assert!(found[0].unwrap().by_value);
}

#[test]
fn stems() {
    let found = ["l/a.b.pps", "pps.2", "none.x", "285702.fastforwarding"].map(median_stem);
    assert_eq!(found, ["a.b", "2", "x", "285702.fastforwarding"]);
}

fn medians(mean: f64, upper: f64) -> Option<Medians> {
    Some(Medians { mean, upper })
}

#[test]
fn rules() {
    let runs = [medians(1.5, 2.0), None, medians(3.0, 3.0)];
    assert_eq!(rule(&runs, &[1.5, 3.0]), Some(Rule::Mean));
    assert_eq!(rule(&runs, &[2.0, 3.0]), Some(Rule::Upper));
    assert_eq!(rule(&runs[1..], &[3.0]), Some(Rule::Mean));
    assert_eq!(rule(&[None, None], &[]), Some(Rule::Mean));
    assert_eq!(
        (
            rule(&runs, &[3.0, 1.5]),
            rule(&runs, &[1.5]),
            rule(&runs, &[])
        ),
        (None, None, None)
    );
    assert_eq!(likelier(&runs, &[2.0]), Rule::Upper);
}

fn named(figures: &[f64]) -> Vec<Named> {
    let names = ["run 1", "run 2", "run 3", "run 4"];
    figures
        .iter()
        .zip(names)
        .map(|(f, name)| Named {
            name: name.into(),
            figure: Some(*f),
            profiled: false,
        })
        .collect()
}

#[test]
fn differences_in_words() {
    let mut runs = named(&[10.0, 20.0, 30.0]);
    assert_eq!(
        difference(&runs, &[10.0, 30.0]),
        "dropped by hand: run 2 (20)"
    );
    assert_eq!(
        difference(&runs, &[10.0, 15.0, 20.0, 30.0]),
        "published without a log: 15"
    );
    assert_eq!(
        difference(&runs, &[20.0, 10.0, 30.0]),
        "the same medians in another order"
    );
    assert_eq!(
        difference(&runs, &[1.0]),
        "1 medians published, 3 recomputed, and they differ"
    );
    runs[0].profiled = true;
    assert_eq!(
        difference(&runs, &[12.5, 20.0, 30.0]),
        "run 1: the log gives 10, published is 12.5 (-20.00 %); its log was overwritten by a later profiling run"
    );
}

proptest! {
    #[test]
    fn whatever_differs_is_told(a in prop::collection::vec(1u8..5, 0..6), b in prop::collection::vec(1u8..5, 0..6)) {
        let a: Vec<f64> = a.into_iter().take(4).map(f64::from).collect();
        let b: Vec<f64> = b.into_iter().map(f64::from).collect();
        prop_assume!(a != b);
        prop_assert!(!difference(&named(&a), &b).is_empty());
    }
}
