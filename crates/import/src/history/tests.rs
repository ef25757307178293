//! Time lines of small archives.

use super::*;
use crate::netbenches::layout::Place;
use crate::netbenches::{ImportedSlot, Published};
use linerate_measure::history::Timeline;

fn row(key: &str, median: f64) -> SeriesRow {
    let (min, max) = (Some(median * 0.99), Some(median * 1.01));
    SeriesRow {
        line: 1,
        key: key.into(),
        median: Some(median),
        min,
        max,
        values: Vec::new(),
    }
}

fn table(name: &str, rows: Vec<SeriesRow>) -> Series {
    Series {
        file: format!("c/n/t/results/l/{name}"),
        rows,
        ..Series::default()
    }
}

fn set(name: &str, value: f64, facts: &[(&str, &str)]) -> Set {
    let slot = ImportedSlot {
        set: name.into(),
        published: Some(Published {
            values: vec![value * 0.99, value, value * 1.01],
            ..Published::default()
        }),
        facts: facts
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect(),
        ..ImportedSlot::default()
    };
    Set {
        slot,
        ..Set::default()
    }
}

fn directory(label: &str, sets: Vec<Set>, series: Vec<Series>) -> ResultDirectory {
    ResultDirectory {
        path: format!("c/n/t/results/{label}"),
        place: Place {
            machine: Some("c".into()),
            card: Some("n".into()),
            topic: Some("t".into()),
            label: Some(label.into()),
        },
        sets,
        series,
        ..ResultDirectory::default()
    }
}

fn timelines(directories: Vec<ResultDirectory>) -> Vec<Timeline> {
    let mut timelines = Timelines::default();
    add(
        &mut timelines,
        &Archive {
            directories,
            ..Archive::default()
        },
    );
    timelines.finish()
}

fn places(timeline: &Timeline) -> Vec<&str> {
    timeline
        .points
        .iter()
        .map(|p| p.place.name.as_str())
        .collect()
}

#[test]
fn a_folder_of_revisions_is_a_time_line_for_each_configuration() {
    // The keys of a merged table are glued to the first row of each group; the reader has put them everywhere.
    let merged = ["276669", "293120", "284739"].map(|r| row(&format!("pf-statefull {r}"), 380e3));
    let own = ["276669", "293120", "284739"].map(|r| row(r, 720e3));
    let sets = vec![set("284739.pf-statefull", 280e3, &[])];
    let tables = vec![
        table("gnuplot.data", merged.to_vec()),
        table("fastforwarding.data", own.to_vec()),
    ];
    let found = timelines(vec![directory("fbsd11-head.2015", sets, tables)]);
    let named: Vec<String> = found.iter().map(|t| t.key.what()).collect();
    assert_eq!(named, ["fastforwarding IPv4", "pf-stateful IPv4"]);
    for timeline in &found {
        assert_eq!(places(timeline), ["r276669", "r284739", "r293120"]);
        assert_eq!(timeline.key.series, "fbsd11-head.2015");
    }
    // Where the runs are known, they count, not the row.
    let figures: Vec<(f64, usize)> = found[1]
        .points
        .iter()
        .map(|p| (p.rate.value, p.rate.runs))
        .collect();
    assert_eq!(figures, [(380e3, 0), (280e3, 3), (380e3, 0)]);
}

/// As in fbsd.2016, whose tables call `fastforwarding` `forwarding`.
#[test]
fn runs_under_two_names_are_one_time_line() {
    let revisions = [(276669, 700e3), (284739, 660e3), (293120, 710e3)];
    let sets = |shift: f64| -> Vec<Set> {
        let sets = revisions.map(|(r, v)| set(&format!("{r}.fastforwarding"), v + shift, &[]));
        sets.into_iter()
            .chain([set("276669.pf", 700e3, &[])])
            .collect()
    };
    let rows = || [revisions.to_vec(), vec![(299288, 720e3)]].concat();
    let tables = || {
        vec![table(
            "forwarding.data",
            rows()
                .iter()
                .map(|(r, v)| row(&r.to_string(), *v))
                .collect(),
        )]
    };
    let found = timelines(vec![directory("fbsd.2016", sets(0.0), tables())]);
    let named: Vec<String> = found.iter().map(|t| t.key.what()).collect();
    assert_eq!(named, ["fastforwarding (also called forwarding) IPv4"]);
    let runs: Vec<usize> = found[0].points.iter().map(|p| p.rate.runs).collect();
    assert_eq!(
        runs,
        [3, 3, 3, 0],
        "the table has the revision that has no runs"
    );
    // Other runs of the same revisions, however close.
    let found = timelines(vec![directory("fbsd.2016", sets(1.0), tables())]);
    let named: Vec<String> = found.iter().map(|t| t.key.what()).collect();
    assert_eq!(named, ["fastforwarding IPv4", "forwarding IPv4"]);
}

#[test]
fn sizes_and_tunings_are_no_revisions() {
    let rows = ["32768", "65536", "131072", "262144", "524288"].map(|r| row(r, 1e6));
    assert_eq!(
        timelines(vec![directory(
            "fbsd10.3.default10K",
            vec![],
            vec![table("gnuplot.data", rows.to_vec())]
        )]),
        []
    );
}

#[test]
fn folders_are_in_the_order_of_versions() {
    let stable = |label: &str, uname: &str, revision: &str| {
        directory(
            label,
            vec![set(
                "forwarding",
                1e6,
                &[("release", uname), ("revision", revision)],
            )],
            vec![],
        )
    };
    let found = timelines(vec![
        stable("fbsd16-n311215", "16.0-CURRENT", ""),
        directory(
            "fbsd11-stable.r332393",
            vec![set("forwarding.inet4", 1e6, &[])],
            vec![],
        ),
        stable("fbsd11.1-yandex", "11.1-RELEASE-p1", "r322489M"),
        directory(
            "fbsd12-head.r320657",
            vec![set("320657.forwarding.inet4", 1e6, &[])],
            vec![],
        ),
        stable("fbsd11.0", "11.0-RELEASE-p1", "r306450M"),
        directory(
            "fbsd13-r364730.x",
            vec![set("364730D26162.forwarding", 1e6, &[])],
            vec![],
        ),
        directory("fbsd.2017", vec![set("nothing", 1e6, &[])], vec![]),
    ]);
    let forwarding: Vec<&Timeline> = found
        .iter()
        .filter(|t| t.key.variant == "forwarding")
        .collect();
    assert_eq!(forwarding.len(), 1, "{found:?}");
    assert_eq!(
        places(forwarding[0]),
        [
            "fbsd11.0",
            "fbsd11.1-yandex",
            "fbsd11-stable.r332393",
            "fbsd12-head.r320657",
            "fbsd16-n311215"
        ]
    );
    assert!(
        found
            .iter()
            .all(|t| t.key.variant != "forwarding with D26162"),
        "one folder is no history"
    );
}

#[test]
fn what_was_sent_tells_time_lines_apart() {
    let with_length = |label: &str, length| {
        let mut long = set("512", 1e6, &[]);
        long.frame_length = Some(length);
        let mut six = set("forwarding.inet6", 1e6, &[]);
        six.frame_length = Some(62);
        directory(
            label,
            vec![long, six, set("forwarding.inet4", 1e6, &[])],
            vec![],
        )
    };
    let found = timelines(vec![
        with_length("fbsd11.0", 508),
        with_length("fbsd11.1", 508),
    ]);
    let named: Vec<String> = found.iter().map(|t| t.key.what()).collect();
    assert_eq!(
        named,
        ["512 IPv4 512 B", "forwarding IPv4", "forwarding IPv6"]
    );
}

#[test]
fn failed_runs_and_profiles_are_no_points() {
    let mut profile = set("276669.forwarding", 1e6, &[]);
    profile.slot.profiling = true;
    let mut failed = set("276700.forwarding", 1e6, &[]);
    failed.slot.published = None;
    let sets = vec![profile, failed, set("276669.forwarding", 0.0, &[])];
    let rows = ["276669", "284739", "293120"].map(|r| row(&format!("{r}.forwarding.inet4"), 720e3));
    let found = timelines(vec![directory(
        "l",
        sets,
        vec![table("gnuplot.data", rows.to_vec())],
    )]);
    assert_eq!(places(&found[0]), ["r276669", "r284739", "r293120"]);
    assert_eq!(found[0].points[0].rate.value, 720e3);
}
