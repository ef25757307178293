//! kill -9 at random moments: every finished trial is there, nothing is half-written or left behind, and `--resume` continues.

use super::experiment::{Experiment, Kept, Random};
use super::order::crossed;
use super::outside::{Outside, namespaces_of};
use crate::common::{LINERATE, Program, Scratch, linerate_line, own_run, wait_for};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// Results of all kills.
#[derive(Debug, Default)]
struct Kills {
    /// Before the campaign was there: while labs were built, flows learned, the batch size chosen.
    before: usize,
    /// Later, with no trial finished since the program was started.
    idle: usize,
    /// After trials.
    after_trials: usize,
    /// Number of runs that ended by themselves.
    completed: usize,
}

/// Kills the experiment's program this number of times, each after a random time below `longest`, and resumes it. `look` is
/// called after each kill. An experiment that ends begins anew; the last run ends without a kill.
#[track_caller]
fn kill(
    experiment: &Experiment,
    count: usize,
    (longest, seed): (Duration, u64),
    mut look: impl FnMut(&Experiment),
) -> Kills {
    let (mut random, mut kept, mut kills) = (Random::new(seed), Kept::default(), Kills::default());
    let mut killed = 0;
    while killed < count {
        let mut running = experiment.go_on().start();
        let pause = || std::thread::sleep(Duration::from_micros(300));
        // Half of them from when the campaign is there on: however fast this machine is, not all of them come before.
        while killed % 2 == 1 && !experiment.has_begun() && running.runs() {
            pause();
        }
        let until = Instant::now() + random.below(longest);
        while Instant::now() < until && running.runs() {
            pause();
        }
        if running.runs() {
            running.signal(libc::SIGKILL);
            let ended = running.wait().no_panic();
            // Between the look and the signal it may have ended after all.
            killed += usize::from(ended.status.code().is_none());
            let added = kept.check(experiment);
            *match (experiment.has_begun(), added) {
                (false, _) => &mut kills.before,
                (true, 0) => &mut kills.idle,
                _ => &mut kills.after_trials,
            } += 1;
            look(experiment);
            if !experiment.is_over() {
                continue;
            }
            // After its last act, perhaps while a document was replaced again. Nothing is left to resume, which would remove its draft.
            experiment.remove_drafts();
            experiment.records_are_complete();
        } else {
            experiment.is_complete(running.wait());
            kept.check(experiment);
        }
        kills.completed += 1;
        experiment.forget();
        kept = Kept::default();
    }
    experiment.is_complete(experiment.go_on().run());
    kept.check(experiment);
    kills
}

#[test]
fn simulated_campaigns_survive_kills() {
    simulated_campaigns(&[1, 2], 4);
}

#[test]
fn takes_minutes_simulated_campaigns_survive_forty_kills() {
    let kills = simulated_campaigns(&[1, 2, 3, 4], 10);
    assert!(kills.iter().any(|k| k.after_trials > 0), "{kills:?}");
}

/// For each seed so many kills, some of them in the time that a campaign takes, and others later.
fn simulated_campaigns(seeds: &[u64], count: usize) -> Vec<Kills> {
    let whole = Experiment::new(&crossed("blocks = 12"), "--simulate ok");
    whole.is_complete(whole.run("--seed 7").run());
    let kills_of = |seed| {
        let experiment = Experiment::new(&crossed("blocks = 12"), "--simulate ok");
        // A campaign takes a second: many kills for each, and some that end by themselves.
        let longest = Duration::from_millis(100 + 100 * seed);
        let kills = kill(&experiment, count, (longest, seed), |_| {});
        println!("below {longest:?}: {kills:?}");
        experiment.blocks_are_complete(12);
        assert_eq!(experiment.order(), whole.order(), "seed {seed}");
        kills
    };
    let kills = std::thread::scope(|scope| {
        let kills_of = &kills_of;
        let seeds: Vec<_> = seeds
            .iter()
            .map(|seed| scope.spawn(move || kills_of(*seed)))
            .collect();
        seeds
            .into_iter()
            .map(|kills| kills.join().unwrap())
            .collect::<Vec<_>>()
    });
    let all: usize = kills
        .iter()
        .map(|k| k.before + k.idle + k.after_trials)
        .sum();
    assert!(all >= seeds.len() * count, "{kills:?}");
    kills
}

/// Blocks of the plans below.
pub const BLOCKS: u64 = 3;

/// Rule sets of two tools, one of them in two sizes.
pub const RULES: &str = r#"
title = "Rule sets"
question = "What is left of rule sets?"
[traffic]
flows = 100
[variants.plain]
about = "routing"
[variants.nft]
rules = { tool = "nftables", filter = "stateful" }
[variants.iptables]
rules = { tool = "iptables", filter = "nat" }
[factors.rules]
sets = "rules.before"
levels = [0, 50]
variants = ["nft"]
[lab]
batch = 32
[trials]
duration = "10 ms"
blocks = 3
"#;

/// Two states of the whole host, whose labs take turns. The setting is one that has nothing to do with forwarding, and that no other test
/// changes.
pub fn turns(setting: &str) -> String {
    TURNS.replace("SETTING", &setting.replace('/', "."))
}

const TURNS: &str = r#"
title = "Turns"
question = "Which settings are left?"
[traffic]
flows = 100
[variants.plain]
about = "routing"
[factors.level]
sets = "sysctls.SETTING"
levels = [63, 31]
[trials]
duration = "10 ms"
blocks = 3
"#;

/// How many connections the host has room for.
const CONNECTIONS: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// More connections than the host has room for: its table and its hash are made larger.
fn states() -> String {
    let most = std::fs::read_to_string(CONNECTIONS).unwrap();
    let states = most.trim().parse::<u64>().unwrap() / 2 + 1000;
    format!(
        r#"
title = "States"
question = "What is left of a larger table of connections?"
[traffic]
flows = 100
[variants.stateful]
rules = {{ tool = "nftables", filter = "stateful", states = {states}, hash = "sized" }}
[trials]
duration = "10 ms"
blocks = 3
"#
    )
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn campaigns_survive_kills_and_leave_nothing_behind() {
    campaigns_survive_kills(4);
}

#[test]
#[ignore = "needs root: run by make test-long as root"]
fn takes_minutes_campaigns_survive_a_hundred_kills() {
    campaigns_survive_kills(100);
}

/// The setting that these campaigns change.
const SETTING: &str = "vm/stat_interval";

/// Over everything that a campaign does: the labs are built, flows are learned, the batch size is chosen, trials run, labs take
/// turns, everything is taken down.
fn campaigns_survive_kills(kills: usize) {
    // With the network of all: only there a connection table can be enlarged.
    own_run();
    let began = Instant::now();
    let before = Outside::now(&[
        SETTING,
        "net/netfilter/nf_conntrack_max",
        "net/netfilter/nf_conntrack_buckets",
    ]);
    let (mut all, mut most) = (0, 0);
    // With as many milliseconds as it takes to set it up, and to run some trials.
    let mut plans = vec![(RULES.to_string(), 35, 1200), (turns(SETTING), 40, 800)];
    // Only the first network of a machine can enlarge it.
    if std::fs::metadata(CONNECTIONS).unwrap().permissions().mode() & 0o200 != 0 {
        plans.push((states(), 25, 500));
    }
    for (seed, (plan, count, longest_ms)) in (1..).zip(&plans) {
        let experiment = Experiment::new(plan, "--allow-host-changes");
        let longest = match kills < 100 {
            true => Duration::from_millis(*longest_ms),
            false => time_of_whole(&experiment),
        };
        let found = kill(
            &experiment,
            count * kills / 100,
            (longest, seed),
            |experiment| {
                before.nothing_is_left(experiment, "after kill -9");
            },
        );
        println!("{:.1} s: {found:?}", began.elapsed().as_secs_f64());
        before.is_as_it_was(&experiment, "after it has come to its end");
        experiment.blocks_are_complete(BLOCKS);
        // A few kills may all come after the first trial, or before it.
        assert!(
            kills < 100 || (found.before + found.idle > 0 && found.after_trials > 0),
            "{found:?}"
        );
        all += found.before + found.idle + found.after_trials;
        most = most.max(namespaces_while_it_runs(&experiment, &before));
    }
    let wanted: usize = plans.iter().map(|(_, count, _)| count * kills / 100).sum();
    assert!(all >= wanted && most >= 3, "{all} kills, {most} namespaces");
}

/// How long this machine needs for a campaign that nobody kills.
fn time_of_whole(experiment: &Experiment) -> Duration {
    let began = Instant::now();
    experiment.is_complete(experiment.go_on().run());
    let lasted = began.elapsed();
    experiment.forget();
    lasted
}

/// Namespaces that a campaign stands on: else it would be no wonder that none is left. It is killed.
fn namespaces_while_it_runs(experiment: &Experiment, before: &Outside) -> usize {
    experiment.forget();
    let running = experiment.go_on().start();
    let begun = || experiment.has_begun().then_some(());
    wait_for("the campaign", begun);
    let namespaces = namespaces_of(experiment);
    running.signal(libc::SIGKILL);
    running.wait();
    before.nothing_is_left(experiment, "after the last kill -9");
    // The next linerate command about labs restores whatever it finds changed.
    linerate_line("lab down --all").run().no_panic();
    before.is_as_it_was(experiment, "after linerate lab down");
    namespaces
}

/// The nice value of the autogroup of a process; `None` without autogroups.
fn nice(pid: &str) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/autogroup")).ok()?;
    text.trim().rsplit_once(' ')?.1.parse().ok()
}

/// A user's shell goes on after a linerate that was killed.
#[test]
#[ignore = "needs root: run by make test as root"]
fn the_priority_of_a_session_is_put_back_after_kill_9() {
    let enabled = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    if enabled.unwrap_or_default().trim() != "1" {
        return;
    }
    let scratch = Scratch::new();
    let line = format!(
        "{LINERATE} bench --trials 1000 --duration 1s --out {} > /dev/null 2>&1 & echo linerate $!; wait; exec sleep 300",
        scratch.file("records")
    );
    let mut shell = Program::new("sh").args(["-c", &line]).start();
    let told = shell.wait_for_line("linerate");
    let pid: i32 = told.rsplit(' ').next().unwrap().trim().parse().unwrap();
    let session = shell.pid().to_string();
    let is = |wanted: i32| (nice(&session) == Some(wanted)).then_some(());
    wait_for("a session before others", || is(-20));
    // SAFETY: the shell has not waited for it.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    wait_for("the priority from before", || is(0));
}
