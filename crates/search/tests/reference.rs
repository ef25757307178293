//! Held against the reference implementation's results.

use linerate_search::reference::{Check, Reference, Rng};

const FILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/mlrsearch/mlrsearch_reference.json");

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn every_class_replay_and_distribution_agrees() {
    let text = std::fs::read_to_string(FILE).expect("the reference is there");
    let reference: Reference = serde_json::from_str(&text).expect("the reference can be read");
    let checks = reference.check(|_| {});
    let different: Vec<&Check> = checks.iter().filter(|check| !check.agrees).collect();
    assert!(different.is_empty(), "{} of {}: {different:#?}", different.len(), checks.len());
    assert!(checks.len() > 400 + 12, "{}", checks.len());
}

#[test]
fn the_generator_is_splitmix64() {
    let mut rng = Rng::new(1);
    let first = [10451216379200822465, 13757245211066428519, 17911839290282890590];
    assert_eq!([(); 3].map(|()| rng.draw()), first);
}
