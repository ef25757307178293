//! Warnings about slots.

use super::super::warnings::grown_loss;
use super::*;
use crate::record::{Connections, States};

#[test]
fn new_connections_that_few_frames_opened_are_warned_of() {
    let with = |states, tracked| {
        let mut all = trials(1e6);
        all.iter_mut().for_each(|t| {
            t.connections = Some(Connections {
                states,
                tracked: Some(tracked),
                limit: None,
                unanswered: None,
            })
        });
        summarise(&campaign(), &all, Stopped::Trials, 0)
            .warnings
            .iter()
            .map(|w| w.text.clone())
            .collect::<String>()
    };
    let warned = with(States::New, 20);
    assert!(
        warned.contains("only 2.0 % of the frames opened a connection"),
        "{warned}"
    );
    assert!(!with(States::New, 1000).contains("opened"));
    assert!(!with(States::OneWay, 20).contains("opened"));
}

/// A campaign that was interrupted before a trial of the tester alone.
#[test]
fn a_rate_without_that_of_the_tester_is_not_called_close_to_it() {
    let mut all = trials(1e6);
    let of_dut: Vec<TrialRecord> = all.drain(..).filter(|trial| trial.slot == 1).collect();
    let told = summarise(&campaign(), &of_dut, Stopped::Interrupted, 0).warnings;
    let told: String = told.iter().map(|warning| warning.text.as_str()).collect();
    assert!(
        told.contains("what the tester does alone is not known") && !told.contains("too close"),
        "{told}"
    );
}

#[test]
fn a_dut_that_falls_silent_is_warned_of_and_one_that_comes_back_is_not() {
    let said = |silent: &[usize]| {
        let mut all = trials(1e6);
        let of_slot = all.iter_mut().filter(|trial| trial.slot == 1).enumerate();
        of_slot
            .filter(|(nth, _)| silent.contains(nth))
            .for_each(|(_, trial)| trial.receiver.frames = 0);
        let summary = summarise(&campaign(), &all, Stopped::Trials, 0);
        summary
            .warnings
            .into_iter()
            .find(|warning| warning.text.contains("no frame came through"))
    };
    let last = trials(1e6).iter().filter(|trial| trial.slot == 1).count() - 1;
    assert_eq!(said(&[last - 2, last - 1, last]).unwrap().slot, Some(1));
    assert_eq!((said(&[last - 1, last]), said(&[0, 1, 2])), (None, None));
}

#[test]
fn a_loss_that_grows_with_time_is_told_from_one_that_grows_with_the_load() {
    let trial = |(number, (load, loss_ratio)): (usize, &(f64, f64))| {
        let made = trial(number as u64, 0, 1, *load, 0);
        TrialRecord {
            asked_fps: Some(*load),
            loss_ratio: *loss_ratio,
            ..made
        }
    };
    let said = |loads: &[(f64, f64)]| {
        let all: Vec<TrialRecord> = loads.iter().enumerate().map(trial).collect();
        grown_loss(&all.iter().collect::<Vec<_>>())
    };
    let clean = [(1e5, 0.0), (1e5, 0.0), (1e5, 0.0), (1e5, 0.1)];
    let falling = [(9e4, 0.1), (5e4, 0.2), (5e4, 0.2), (2e4, 0.3), (2e4, 0.3)];
    assert!(said(&[&clean[..], &falling].concat()).is_some());
    assert_eq!(
        said(&[&clean[..], &falling, &[(1e4, 0.0)]].concat()),
        None,
        "less is lost at a small load"
    );
    assert_eq!(said(&[&clean[..], &[(1.1e5, 0.3); 9]].concat()), None);
    assert_eq!(said(&falling), None);
    let floor: Vec<(f64, f64)> = (0..20)
        .map(|n| (1e5 - 4e3 * f64::from(n), 1e-3 + 1e-4 * f64::from(n % 3)))
        .collect();
    assert_eq!(said(&floor), None, "one frame in N, at any load");
}
