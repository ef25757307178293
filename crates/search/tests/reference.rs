//! Held against the reference implementation's results.

use linerate_search::reference::{Check, Reference, Rng};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/mlrsearch/mlrsearch_reference.json"
);

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn every_class_replay_and_distribution_agrees() {
    let text = std::fs::read_to_string(FILE).expect("the reference is there");
    let reference: Reference = serde_json::from_str(&text).expect("the reference can be read");
    let checks = reference.check(|_| {});
    let different: Vec<&Check> = checks.iter().filter(|check| !check.agrees).collect();
    assert!(
        different.is_empty(),
        "{} of {}: {different:#?}",
        different.len(),
        checks.len()
    );
    assert!(checks.len() > 400 + 12, "{}", checks.len());
}

/// One figure of each kind is changed: exactly the results that depend on it differ.
#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn each_figure_of_the_file_counts() {
    let text = std::fs::read_to_string(FILE).expect("the reference is there");
    let mut whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    whole.as_object_mut().unwrap().remove("distributions");
    let random = "/splitmix64_first_3_of_seed_1/2";
    let lost = "/replays/0/trials/2/3";
    for (figure, value, differ) in [
        ("/capacity", 999_999.0.into(), &["frames of each trial"][..]),
        ("/queue_frames", 255.0.into(), &["frames of each trial"]),
        ("/slot_s", 0.2.into(), &["frames of each trial"]),
        (random, "1".into(), &["SplitMix64"]),
        (
            "/example/conditional_throughput_at_1e6/1s final",
            1.0.into(),
            &["conditional throughput"],
        ),
        (
            "/classification/vectors/17/quantile_loss",
            0.75.into(),
            &["classification 17"],
        ),
        (
            lost,
            18_883.into(),
            &["seed 1, up to 14880952 frames/s: frames of each trial"],
        ),
        (
            "/replays/0/results/ndr/conditional",
            1.0.into(),
            &["seed 1, up to 14880952 frames/s: ndr"],
        ),
    ] {
        let mut changed = whole.clone();
        let place = changed
            .pointer_mut(figure)
            .unwrap_or_else(|| panic!("no {figure}"));
        assert_ne!(*place, value, "{figure}");
        *place = value;
        let reference: Reference = serde_json::from_value(changed).unwrap();
        let checks = reference.check(|_| {});
        let different: Vec<&Check> = checks.iter().filter(|check| !check.agrees).collect();
        assert!(!different.is_empty(), "{figure} does not count");
        let named = |check: &&&Check| !differ.iter().any(|part| check.of.contains(part));
        assert_eq!(different.iter().find(named), None, "{figure}");
    }
}

#[test]
fn the_generator_is_splitmix64() {
    let mut rng = Rng::new(1);
    let first = [
        10451216379200822465,
        13757245211066428519,
        17911839290282890590,
    ];
    assert_eq!([(); 3].map(|()| rng.draw()), first);
}
