use super::*;
use crate::netbenches::{ImportedSlot, Published, Rule};

fn directory() -> ResultDirectory {
    let sample = |time_us, packets| {
        (
            1,
            linerate_hosts::pktgen::Sample {
                time_us,
                packets,
                pps: packets,
                bps: None,
                interval_us: 1_000_000,
            },
        )
    };
    let good = Run {
        trial: ImportedTrial {
            file: "r/bench.a.inet4.1.receiver".into(),
            number: Some(1),
            samples: Some(3),
            lines: Some((16, 20)),
            sound: Some(995.0),
            steady: Some((0, 3)),
            ..ImportedTrial::default()
        },
        median_pps: Some(990.0),
        offered_pps: Some(1100.0),
        log_samples: vec![sample(5_000_000, 1000), sample(6_000_000, 980)],
    };
    let failed = ImportedTrial {
        file: "r/bench.a.inet4.2.receiver".into(),
        problems: vec!["empty".into()],
        ..ImportedTrial::default()
    };
    let failed = Run {
        trial: failed,
        ..Run::default()
    };
    let published = |values: &[f64]| {
        Some(Published {
            file: "r/a.inet4.pps".into(),
            values: values.to_vec(),
            ..Published::default()
        })
    };
    let logged = Set {
        slot: ImportedSlot {
            set: "a.inet4".into(),
            published: published(&[990.0]),
            agrees: Some(true),
            rule: Some(Rule::Mean),
            facts: [
                ("sender.flows".to_string(), "2000".to_string()),
                (facts::START_UTC.into(), "2016-01-28T20:08:08Z".into()),
            ]
            .into(),
            ..ImportedSlot::default()
        },
        family: Some("inet4".into()),
        runs: vec![good, failed],
        frame_length: Some(60),
        ..Set::default()
    };
    let only = Set {
        slot: ImportedSlot {
            set: "a".into(),
            published: published(&[7.0, 8.0]),
            ..ImportedSlot::default()
        },
        family: Some("inet4".into()),
        ..Set::default()
    };
    ResultDirectory {
        path: "m/c/t/results/l".into(),
        place: Place {
            machine: Some("Xeon_E5-2650v4_2x12Cores".into()),
            card: Some("Mellanox".into()),
            ..Place::default()
        },
        sets: vec![logged, only],
        ..ResultDirectory::default()
    }
}

#[test]
fn a_folder_becomes_a_campaign() {
    let Records {
        campaign,
        host,
        trials,
    } = records(directory(), "0.1.0").unwrap();
    assert_eq!(
        (campaign.name.as_str(), campaign.started.as_str()),
        ("Xeon_E5-2650v4_2x12Cores Mellanox", "2016-01-28T20:08:08Z")
    );
    assert_eq!((host.cpus, campaign.asked.flows), (24, 2000));
    let titles: Vec<String> = campaign
        .slots
        .iter()
        .map(|slot| slot.name.clone())
        .collect();
    assert_eq!(titles, ["a IPv4 64 B", "a#2 IPv4"]);
    assert!(campaign.slots.iter().all(|s| !s.is_calibration()));
    let order: Vec<(u64, u32, usize)> = trials.iter().map(|t| (t.trial, t.block, t.slot)).collect();
    assert_eq!(order, [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1)]);
}

#[test]
fn a_run_becomes_a_trial_with_its_origin() {
    let trials = records(directory(), "0.1.0").unwrap().trials;
    let good = &trials[0];
    let rates = good.rates.unwrap();
    assert_eq!(
        (rates.offered, rates.received, rates.seconds),
        (1100.0, 990.0, 3.0)
    );
    assert!((good.loss_ratio - 0.1).abs() < 1e-12 && good.audit.valid);
    let samples: Vec<(u64, u64)> = good.samples.iter().map(|s| (s.t_ns, s.received)).collect();
    assert_eq!(samples, [(1_000_000_000, 1000), (2_000_000_000, 1980)]);
    let origin = good.imported.as_ref().unwrap();
    assert_eq!(
        (origin.file.as_str(), origin.lines, origin.sound),
        ("r/bench.a.inet4.1.receiver", Some((16, 20)), Some(995.0))
    );
    let failed = &trials[2];
    assert_eq!((failed.rates, failed.audit.valid), (None, false));
    assert_eq!(
        failed.audit.failures().next().unwrap(),
        "no figure could be imported: empty"
    );
    assert_eq!(trials[3].rates.unwrap().received, 8.0);
}

#[test]
fn records_read_back_and_campaigns_of_before_still_do() {
    let records = records(directory(), "0.1.0").unwrap();
    let text = serde_json::to_string(&records.campaign).unwrap();
    assert_eq!(
        linerate_measure::record::read_document::<Campaign>("x", &text).unwrap(),
        records.campaign
    );
    let line = serde_json::to_string(&records.trials[0]).unwrap();
    assert_eq!(
        linerate_measure::record::read_document::<TrialRecord>("x", &line).unwrap(),
        records.trials[0]
    );
    let mut own = records.campaign;
    (own.imported, own.slots) = (None, Vec::new());
    assert!(
        !serde_json::to_string(&own)
            .unwrap()
            .contains("imported\":{")
    );
}

#[test]
fn cores_of_machines() {
    assert_eq!(
        ["AMD_GX-412TC_4Cores", "Xeon_2x12Cores", "router"].map(cores),
        [Some(4), Some(24), None]
    );
    assert_eq!(cores("Xeon_99999x99999Cores"), None);
}
