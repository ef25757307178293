use super::*;
use proptest::prelude::*;

fn set(variant: &str, family: &str, rate: f64) -> Set {
    let runs = vec![rate * 0.99, rate, rate * 1.01];
    Set {
        name: format!("{variant} {family}"),
        variant: variant.into(),
        family: family.into(),
        frame: None,
        unit: Unit::Frames,
        aside: false,
        rate: median_interval(&runs, 0.95).unwrap(),
        runs,
        samples: false,
        baseline: None,
    }
}

fn drawn(topic: &str, names: &[&str]) -> Chart {
    let sets: Vec<Set> = names
        .iter()
        .enumerate()
        .map(|(n, name)| set(name, "IPv4", 1e6 * (n + 1) as f64))
        .collect();
    let mut all = pictures("title", topic, &sets);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Label of the axis, names of the series, and places of the points of the first.
fn shape(chart: &Chart) -> (&str, Vec<&str>, Vec<f64>) {
    let series = chart
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    (
        &chart.x.label,
        series,
        chart.series[0].points.iter().map(|spot| spot.x).collect(),
    )
}

#[test]
fn numbers_in_names_make_lines() {
    let queues = drawn("hw.ix.num_queues", &["1", "2", "16", "8-default"]);
    assert_eq!(
        shape(&queues),
        ("receive queues", vec!["median"], vec![1.0, 2.0, 8.0, 16.0])
    );
    assert_eq!(
        (queues.series[0].look, queues.series[0].points[2].y),
        (Look::Line, 4.0)
    );
    assert_eq!(queues.series[0].points[2].trials, [3.96, 4.0, 4.04]);
    let states = [
        "pf-stateful.64",
        "pf-stateful.1K",
        "pf-stateful.5M",
        "ipfw-stateful.64",
        "ipfw-stateful.1K",
        "ipfw-stateful.5M",
    ];
    let states = drawn("firewalls-statefull", &states);
    assert_eq!(
        shape(&states),
        (
            "states",
            vec!["pf-stateful", "ipfw-stateful"],
            vec![64.0, 1e3, 5e6]
        )
    );
    assert_eq!(states.x.scale, Scale::Log);
    let sizes = drawn("pf-states_hashsize", &["32KiB", "64KiB", "1MiB"]);
    assert_eq!(shape(&sizes).2, [32768.0, 65536.0, 1_048_576.0]);
    // No place for 0 on an axis of ratios.
    let entries = drawn("firewalls-stateless-table", &["pf-0", "pf-10", "pf-100000"]);
    assert_eq!(
        entries.x.scale,
        Scale::Names(vec!["0".into(), "10".into(), "100000".into()])
    );
    let coalesced = drawn(
        "x",
        &[
            "q12.on", "q16.on", "q24.on", "q12.off", "q16.off", "q24.off",
        ],
    );
    assert_eq!(shape(&coalesced).1, ["on", "off"]);
}

#[test]
fn other_names_make_bars() {
    for (topic, names) in [
        (
            "kern.random.harvest.mask",
            &["351", "511-default", "4095"][..],
        ),
        (
            "ipsec",
            &["aes-cbc-128-hmac-sha1", "aes-cbc-256-hmac-sha2-256", "null"],
        ),
        (
            "machdep.hyperthreading_allowed",
            &["HT-enabled-8rxq", "HT-enabled-16rxq", "HT-disabled"],
        ),
        ("x", &["1", "2"]),
    ] {
        let chart = drawn(topic, names);
        assert_eq!(chart.series[0].look, Look::Bars, "{topic}");
        assert_eq!(
            chart.x.scale,
            Scale::Names(names.iter().map(|name| name.to_string()).collect())
        );
    }
    let firewalls = ["forwarding", "pf", "ipfw"];
    let sets: Vec<Set> = firewalls
        .iter()
        .flat_map(|name| ["IPv4", "IPv6"].map(|family| set(name, family, 1e6)))
        .collect();
    let chart = pictures("title", "firewalls", &sets).remove(0);
    assert_eq!(
        shape(&chart),
        ("set", vec!["IPv4", "IPv6"], vec![0.0, 1.0, 2.0])
    );
}

#[test]
fn revisions_make_a_line_where_they_are_many() {
    let many = drawn(
        "firewalls",
        &[
            "276669.pf",
            "277034.pf",
            "277350.pf",
            "277717.pf",
            "278038.pf",
        ],
    );
    assert_eq!(
        shape(&many),
        (
            "source revision",
            vec!["pf"],
            vec![276669.0, 277034.0, 277350.0, 277717.0, 278038.0]
        )
    );
    let two = drawn(
        "firewalls",
        &[
            "364729.forwarding",
            "364729.pf",
            "364730.forwarding",
            "364730.pf",
        ],
    );
    assert_eq!(
        shape(&two),
        ("set", vec!["364729", "364730"], vec![0.0, 1.0])
    );
}

#[test]
fn frame_lengths_have_the_line_rate_of_a_link_that_carries_them() {
    let lengths = [(64u16, 152_694.0), (1024, 119_730.0), (1518, 81_273.0)];
    let sets: Vec<Set> = lengths
        .iter()
        .map(|(length, rate)| Set {
            frame: Some(*length),
            ..set(&length.to_string(), "IPv4", *rate)
        })
        .collect();
    let chart = pictures("title", "RFC2544", &sets).remove(0);
    assert_eq!(chart.x.label, "frame length with FCS, B");
    let names: Vec<&str> = chart
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "median",
            "line rate, 1 Gbit/s",
            "line rate of simple IMIX, 1 Gbit/s"
        ]
    );
    let [line, imix] = [1, 2].map(|at| chart.series[at].points.last().unwrap().y * 1e3);
    assert_eq!(
        (line.round(), imix.round()),
        (81_274.0, (1e9 / 8.0 / (SIMPLE_IMIX_AVERAGE + 20.0)).round())
    );
}

#[test]
fn campaigns_stand_side_by_side() {
    let mask = |rate: f64| {
        vec![
            set("511-default", "IPv4", rate),
            set("351", "IPv4", 1.1 * rate),
        ]
    };
    let campaigns = [("Atom", mask(1e6)), ("Xeon", mask(4e6))];
    let named: Vec<(String, Vec<&Set>)> = campaigns
        .iter()
        .map(|(name, sets)| (name.to_string(), sets.iter().collect()))
        .collect();
    let chart = together("mask", "kern.random.harvest.mask", &named).unwrap();
    assert_eq!(
        chart.x.scale,
        Scale::Names(vec!["Atom".into(), "Xeon".into()])
    );
    assert_eq!(
        shape(&chart),
        ("campaign", vec!["351", "511-default"], vec![0.0, 1.0])
    );
}

proptest! {
    #[test]
    fn any_names_make_a_picture_or_none(
        names in proptest::collection::vec("\\PC{0,12}|[0-9]{1,30}[KMq]?|[a-z]-[0-9]{1,6}", 0..12),
        topic in "\\PC{0,12}",
    ) {
        let sets: Vec<Set> = names.iter().map(|name| set(name, "", 1e6)).collect();
        for chart in pictures("title", &topic, &sets) {
            let spots = chart.series.iter().flat_map(|series| &series.points);
            prop_assert!(spots.clone().count() > 0);
            prop_assert!(spots.clone().all(|spot| spot.x.is_finite()));
        }
    }
}
