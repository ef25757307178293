//! How long campaigns take.

use super::linux;
use crate::timetable::{Bound, Timetable};
use linerate_measure::experiment::Order;

#[test]
fn times_follow_from_trials_and_what_is_around_them() {
    let campaign = linux("[variants.a]");
    let times = Timetable::new(&campaign);
    assert_eq!((times.blocks, times.trials), (10, 20));
    assert_eq!(times.block_ns, 2 * times.trial_ns);
    assert_eq!(times.total_ns, times.set_up_ns + 10 * times.block_ns);
    let mut short = campaign.clone();
    short.experiment.trials.budget_ns = Some(times.block_ns * 4 + 1);
    assert_eq!(Timetable::new(&short).blocks, 4);
    assert_eq!(Timetable::new(&short).bound, Bound::Budget);
}

/// Hosts that are namespaces of this machine have no cards that bounce, and nothing is fetched over a network.
#[test]
fn namespaces_of_this_machine_take_less_time_than_hosts() {
    let text = "lab.file = \"lab.toml\"\n[variants.a]";
    let mut campaign = linux(text);
    let hosts = Timetable::new(&campaign);
    campaign.is_for(&crate::lab::Lab::read(crate::lab::EXAMPLE_NAMESPACES.as_bytes()).unwrap());
    let local = Timetable::new(&campaign);
    assert!(
        hosts.trial_ns - local.trial_ns > 14_000_000_000,
        "{local:?}"
    );
    assert!(local.set_up_ns < 2_000_000_000, "{local:?}");
    campaign.is_for(&crate::lab::Lab::read(crate::lab::EXAMPLE.as_bytes()).unwrap());
    assert_eq!(Timetable::new(&campaign), hosts);
}

#[test]
fn connections_that_are_kept_open_take_time_of_their_own() {
    let with = |open: u32| Timetable::new(&linux(&format!("traffic.open = {open}\n[variants.a]")));
    let longer = with(1_000_000).trial_ns - with(1).trial_ns;
    assert!(
        (10_000_000_000..30_000_000_000).contains(&longer),
        "{longer}"
    );
    // At a rate, they are opened, asked and closed at that rate.
    let paced = "traffic = { open = 20_000, rate = \"1 kpps\" }\n[variants.a]";
    let paced = Timetable::new(&linux(paced)).block_ns - with(1).block_ns;
    assert!((59_000_000_000..61_000_000_000).contains(&paced), "{paced}");
}

/// Both ends and a candidate, however long the list is.
#[test]
fn blocks_of_a_bisection_have_three_trials() {
    let list = "[variants.a]\n[factors.n]\nsets = \"routes.count\"\nlevels = [1, 2, 3, 4, 5, 6]";
    let mut campaign = linux(list);
    let all = Timetable::new(&campaign);
    campaign.experiment.trials.order = Order::Bisection;
    let times = Timetable::new(&campaign);
    assert_eq!((times.trials, times.block_ns), (30, 3 * times.trial_ns));
    assert_eq!((times.blocks, all.block_ns), (10, 7 * times.trial_ns));
}
