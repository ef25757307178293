//! `linerate bisect`: which element of an ordered list made a DUT slower?

use super::run::{self, OF_TRIALS, Which};
use crate::args::keyed::{Keys, Opt, Verb, key, stands_for};
use crate::args::{HEADERS, mapping};
use crate::prelude::*;
use linerate_measure::experiment::System;
use linerate_plan::rules::own::Meaning;
use linerate_plan::{Keyed, Plan, Source};
use linerate_runner::git::Tracked;
use linerate_runner::session::{Session, chosen, told};
use std::cmp::Ordering;

/// Options of `bisect` that are keys of a plan.
#[derive(Debug)]
pub struct Options;

impl Verb for Options {
    const OPTIONS: &'static [&'static [Opt]] = &[
        &[
            key("--connections", "traffic.connections", "KIND").alone("request"),
            key("--sizes", "traffic.size", "SIZE"),
            key("--flows", "traffic.flows", "N"),
            key("--direction", "traffic.direction", "DIRECTION"),
        ],
        &[
            HEADERS[0],
            HEADERS[1],
            HEADERS[2],
            HEADERS[3].one(),
            HEADERS[4].one(),
        ],
        &[
            key("--duration", "trials.duration", "TIME")
                .about("How long one trial measures [default: 100ms, or the plan's]"),
            key("--mode", "lab.mode", "MODE").only(&["inline", "threaded"]),
            key("--cpus", "lab.generator-cpus", "LIST"),
            key("--dut-cpus", "lab.dut-cpus", "LIST"),
            key("--backend", "lab.port", "BACKEND"),
            key("--batch", "lab.batch", "N"),
        ],
    ];
    const OWN: &'static [Keyed] = &[
        stands_for("--budget", "trials.budget"),
        stands_for("--map", "rules.map"),
    ];
}

#[derive(Args)]
#[command(mut_arg("fail_if_slower", |arg| arg.hide(true)))]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: 10min]")))]
#[command(mut_arg("name", |arg| arg.help("Name of the campaign (this measurement and its records), and part of the name of its directory [default: bisect]")))]
#[command(after_help = "Examples:
  sudo linerate bisect --rules history/          the rule files of a folder, in the order of their names
  sudo linerate bisect --rules monday.nft --rules tuesday.nft --rules friday.nft
  sudo linerate bisect --commits v1.0..HEAD --rules etc/fw.nft     the commits of a git tree that changed this file
  sudo linerate bisect --kernel 6.1.0-40-amd64 --kernel 6.1.0-44-amd64 --kernel 6.1.0-47-amd64
  sudo linerate bisect rules --over rules --variant nftables    the levels of a factor of a plan
  linerate bisect my.toml --over sysctl --lab LAB.toml              on the hosts of a real lab
  linerate run --resume DIR --budget 20min       continues where the time ran out
  linerate bisect flows --over flows \\
      --simulate rate=20kpps,noise=1%,step=3%@3   a simulated DUT

The first element of the list is the good end, the last one the bad end. In a folder, numbers in names count as numbers:
r2.nft comes before r10.nft. An element that cannot be measured is passed over.

At first, blocks have both ends; then both ends and one candidate, so that drift of the machine cancels out. At the
end, they also have the culprit and the element before it: the ratio of these two is the size of the step. Of two steps,
the larger one is the culprit; the other one is mentioned if the trials show it. docs/bisect.md has the method.

Exit status: 0 the culprit is found; 1 an error, or only one element could be measured; 2 bad arguments; 4 no element could be measured; 5 undecided, or the last
element is faster than the first; 130 interrupted (`linerate run --resume DIR` continues).")]
pub struct Bisect {
    /// A plan: a file, or a name that `linerate plan list` shows
    #[arg(value_name = "PLAN", conflicts_with_all = ["rules", "kernels"])]
    plan: Option<PathBuf>,

    /// The factor of the plan whose levels are the list [default: the only one]. The other factors are left out
    #[arg(long, value_name = "FACTOR", requires = "plan")]
    over: Option<String>,

    /// The variant of the DUT [default: the plan's only one; forwarding for kernels]
    #[arg(long, value_name = "VARIANT", conflicts_with = "rules")]
    variant: Option<String>,

    /// A rule file (nft or iptables-save), or a folder of them; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,

    /// Commits of a git tree, GOOD..BAD: the list is the rule file of --rules in GOOD, and in each commit that changed it since
    #[arg(
        long,
        value_name = "RANGE",
        requires = "rules",
        conflicts_with = "kernels"
    )]
    commits: Option<String>,

    /// A folder of the git tree, to which the rule file is relative
    #[arg(long, value_name = "DIR", requires = "commits", default_value = ".")]
    tree: PathBuf,

    /// Side of the lab for an interface or network of the rule files, as for `linerate bench`; may be repeated
    #[arg(long = "map", value_name = "NAME=END", value_parser = mapping, requires = "rules")]
    map: Vec<(String, Meaning)>,

    /// A kernel, as for `linerate bench`, or a folder of them; may be repeated. Needs KVM, or --emulated
    #[arg(long = "kernel", value_name = "KERNEL", conflicts_with_all = ["simulate", "rules"])]
    kernels: Vec<String>,

    #[command(flatten)]
    keys: Keys<Options>,

    #[command(flatten)]
    which: Which,

    #[command(flatten)]
    campaign: CampaignArgs,
}

/// Runs the verb.
///
/// # Errors
/// The reason why it could not measure.
pub fn run(args: &Bisect) -> Exit {
    if args.campaign.fail_if_slower.is_some() {
        bail_usage!(
            "--fail-if-slower is for variants: a bisection finds the slower element by itself"
        );
    }
    if args.plan.is_none() && args.rules.is_empty() && args.kernels.is_empty() {
        bail_usage!(
            "name a list: --rules FOLDER, --kernel several times, or a plan and its factor with --over"
        );
    }
    run::begin(&args.campaign);
    let simulated = args.campaign.simulate.is_some();
    let (plan, site) = match &args.plan {
        Some(file) => chosen(&args.which.choice(), file, simulated, |plan| {
            *plan = args.keys.over(std::mem::take(plan));
            over(args, plan)
        })?,
        None if args.which.lab.is_some() => bail_usage!(
            "--lab: rule files and kernels are measured on this machine; for other hosts, write a plan with a factor that sets rules.file"
        ),
        None => {
            let tracked = tracked(args)?;
            let plan = own(args, tracked.as_ref())?;
            let read = &mut |name: &str| match &tracked {
                Some(tracked) => tracked.text(name),
                None => input::rules(Path::new(name)),
            };
            let plan = Plan::of(&plan, read).map_err(told)?;
            let campaign = plan.campaign(System::Linux, args.which.quick).cloned();
            match campaign {
                Some(campaign) => (campaign, None),
                None => bail_usage!("--quick is the quick form of a plan: name a plan"),
            }
        }
    };
    let campaign = CampaignArgs {
        name: Some(args.campaign.name.clone().unwrap_or("bisect".into())),
        ..args.campaign.clone()
    };
    run::carry_out(
        Session::new(&campaign.wanted(), None, plan, site)?,
        &campaign,
    )
}

/// The rule file whose commits are the list.
fn tracked(args: &Bisect) -> Result<Option<Tracked>> {
    if args.commits.is_none() {
        return Ok(None);
    }
    let [file] = &args.rules[..] else {
        bail_usage!("--commits are those of one rule file: give --rules once");
    };
    Ok(Some(Tracked {
        tree: args.tree.clone(),
        file: file.display().to_string(),
    }))
}

/// The list of the arguments as a plan.
fn own(args: &Bisect, tracked: Option<&Tracked>) -> Result<Source> {
    let mut plan = args.keys.over(Source::default());
    plan.set("", &["title"], "linerate bisect");
    let variant = args.variant.as_deref().unwrap_or("forwarding");
    let (option, name, field, levels) = match (tracked.zip(args.commits.as_ref()), &args.rules[..])
    {
        (Some((tracked, range)), _) => {
            let revisions = tracked.revisions(range)?;
            if revisions.len() < 2 {
                let file = &tracked.file;
                bail_usage!("--commits {range}: no commit of this range changed {file}");
            }
            ("--commits", "commit", "rules.file", revisions)
        }
        (None, []) => {
            let named: Vec<PathBuf> = args.kernels.iter().map(PathBuf::from).collect();
            let kernels = files(&named, "--kernel", is_kernel)?;
            ("--kernel", "kernel", "kernel", kernels)
        }
        (None, named) => {
            let files = files(named, "--rules", |name| !name.starts_with('.'))?;
            ("--rules", "rules", "rules.file", files)
        }
    };
    if levels.len() < 2 {
        bail_usage!("{option}: a list has two elements or more");
    }
    let question = match option {
        "--commits" => "Which commit made it slower?",
        "--rules" => "Which rule file made it slower?",
        _ => "Which kernel made it slower?",
    };
    plan.set("", &["question"], question);
    plan.set("--variant", &["variants", variant, "from"], variant);
    for (from, end) in &args.map {
        let path = ["variants", variant, "rules", "map", from];
        plan.set("--map", &path, end.to_string());
    }
    plan.set(option, &["factors", name, "sets"], field);
    plan.set(option, &["factors", name, "levels"], levels);
    plan.set("", &["trials", "duration"], "100 ms");
    bisecting(args, &mut plan);
    Ok(plan)
}

/// Whether a file of a folder is a kernel, by its name.
fn is_kernel(name: &str) -> bool {
    ["vmlinuz", "bzImage"]
        .iter()
        .any(|kernel| name.starts_with(kernel))
        || name.ends_with(".deb")
}

/// The files of the arguments, and those of their folders whose name `fits`, in the order of their names.
fn files(named: &[PathBuf], option: &str, fits: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for path in named {
        if !path.is_dir() {
            all.push(path.display().to_string());
            continue;
        }
        let folder = path.display();
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries =
            entries.with_context(|| format!("{option}: cannot read the folder {folder}"))?;
        let names = entries.into_iter().filter(|entry| entry.path().is_file());
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| fits(name)).collect();
        names.sort_by(|a, b| by_numbers(a, b));
        let paths = names
            .iter()
            .map(|name| path.join(name).display().to_string());
        all.extend(paths);
    }
    Ok(all)
}

/// The order of names in which numbers count as numbers: r2 comes before r10. Of equal numbers, the longer one comes first.
fn by_numbers(mut a: &str, mut b: &str) -> Ordering {
    loop {
        let [own, other] = [a, b]
            .map(|text| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len());
        let order = if own > 0 && other > 0 {
            let [of, than] = [&a[..own], &b[..other]].map(|number| number.trim_start_matches('0'));
            (a, b) = (&a[own..], &b[other..]);
            of.len()
                .cmp(&than.len())
                .then(of.cmp(than))
                .then(other.cmp(&own))
        } else {
            let [of, than] = [a, b].map(|text| text.chars().next());
            if of.is_none() && than.is_none() {
                return Ordering::Equal;
            }
            let [own, other] = [of, than].map(|first| first.map_or(0, char::len_utf8));
            (a, b) = (&a[own..], &b[other..]);
            of.cmp(&than)
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Leaves of a plan one variant and one factor.
fn over(args: &Bisect, plan: &mut Source) -> Result<()> {
    let one = |option: &str, table: &str, wanted: &Option<String>| -> Result<String> {
        let all = plan.keys(&[table]);
        match (wanted, &all[..]) {
            (Some(name), _) if all.contains(name) => Ok(name.clone()),
            (None, [only]) => Ok(only.clone()),
            (_, []) => bail_usage!("this plan has no [{table}]: there is no list"),
            (Some(name), _) => bail_usage!("{option} {name}: this plan has {}", all.join(", ")),
            (None, _) => bail_usage!("name one of {} with {option}", all.join(", ")),
        }
    };
    let factor = one("--over", "factors", &args.over)?;
    let variant = one("--variant", "variants", &args.variant)?;
    let mut kept = vec![variant.clone()];
    while let Some(from) = plan.text(&["variants", &kept[kept.len() - 1], "from"]) {
        let from = from.to_owned();
        if kept.contains(&from) || !plan.has(&["variants", &from]) {
            break;
        }
        kept.push(from);
    }
    for other in plan.keys(&["variants"]) {
        if !kept.contains(&other) {
            plan.remove(&["variants", &other]);
        }
    }
    for other in plan.keys(&["factors"]) {
        if other != factor {
            plan.remove(&["factors", &other]);
            plan.remove(&["quick", "levels", &other]);
        }
    }
    let path = ["factors", &factor, "variants"];
    plan.set("--variant", &path, [variant.as_str()]);
    plan.remove(&["quick", "variants"]);
    plan.remove(&["expect"]);
    plan.remove(&["compare"]);
    for key in OF_TRIALS
        .iter()
        .filter(|key| !["duration", "pause"].contains(key))
    {
        plan.remove(&["trials", key]);
        plan.remove(&["quick", key]);
    }
    bisecting(args, plan);
    Ok(())
}

/// Sets what every bisection has.
fn bisecting(args: &Bisect, plan: &mut Source) {
    plan.set("", &["trials", "order"], "bisection");
    plan.set("", &["trials", "budget"], "10 min");
    args.keys.set(plan);
    args.campaign.wanted().set(plan);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = [
            "r10", "r9.nft", "r2", "r02", "q", "r2b1", "r", "é1", "r2b", "10", "9",
        ];
        names.sort_by(|a, b| by_numbers(a, b));
        let sorted = [
            "9", "10", "q", "r", "r02", "r2", "r2b", "r2b1", "r9.nft", "r10", "é1",
        ];
        assert_eq!(names, sorted);
    }
}
