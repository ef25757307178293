//! `linerate bisect`: which element of an ordered list made it slower?

use super::run::{self, OF_TRIALS, Which};
use crate::args::keyed::{Keys, Opt, Verb, key, stands_for};
use crate::args::{HEADERS, mapping};
use crate::prelude::*;
use linerate_measure::experiment::System;
use linerate_plan::rules::own::Meaning;
use linerate_plan::{Keyed, Plan, Source};
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
        &HEADERS,
        &[
            key("--duration", "trials.duration", "TIME")
                .about("How long one trial measures [default: 100ms, or the plan's]"),
            key("--mode", "lab.mode", "MODE").only(&["inline", "threaded"]),
            key("--cpus", "lab.generator-cpus", "LIST"),
            key("--dut-cpus", "lab.dut-cpus", "LIST"),
            key("--port", "lab.port", "BACKEND"),
            key("--batch", "lab.batch", "N"),
        ],
    ];
    const OWN: &'static [Keyed] = &[
        stands_for("--budget", "trials.budget"),
        stands_for("--map", "rules.map"),
    ];
}

#[derive(Args)]
#[command(mut_arg("budget", |arg| arg.help("Time for all trials [default: 10min]")))]
#[command(mut_arg("name", |arg| arg.help("Name of the campaign (this measurement and its records), and part of the name of its directory [default: bisect]")))]
#[command(after_help = "Examples:
  sudo linerate bisect --rules history/          the rule files of a folder, in the order of their names
  sudo linerate bisect --rules monday.nft --rules tuesday.nft --rules friday.nft
  sudo linerate bisect --kernel 6.1.0-40-amd64 --kernel 6.1.0-44-amd64 --kernel 6.1.0-47-amd64
  sudo linerate bisect rules --over rules --variant nftables    the levels of a factor of a plan
  linerate bisect my.toml --over sysctl --lab LAB.toml              on the hosts of a real lab
  linerate run --resume DIR --budget 20min       continues where the time ran out
  linerate bisect forwarding --over flows --simulate rate=20kpps,noise=1%,step=3%@3     a simulated DUT

The first element of the list is the good end, the last one the bad end. In a folder, numbers in names count as numbers:
r2.nft comes before r10.nft. An element that cannot be measured is passed over.

Every block of trials has both ends and one candidate, so that drift of the machine cancels out. At the end, blocks have
the culprit and the element before it: their ratio is the size of the step. Of two steps, the larger one is the culprit;
the other one is mentioned if the trials show it. docs/bisect.md has the method.

Exit status: 0 the culprit is found; 1 an error, or fewer than two elements could be measured; 2 bad arguments; 4 everything is skipped; 5 undecided, or the last
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

    /// Where an interface or network of the rule files is in the lab, as for `linerate bench`; may be repeated
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
            let plan = own(args)?;
            let read = &mut |name: &str| input::rules(Path::new(name));
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

/// The list of the arguments as a plan.
fn own(args: &Bisect) -> Result<Source> {
    let mut plan = args.keys.over(Source::default());
    plan.set("", &["title"], "linerate bisect");
    let variant = args.variant.as_deref().unwrap_or("forwarding");
    let (option, name, field, levels) = match args.rules.is_empty() {
        false => (
            "--rules",
            "rules",
            "rules.file",
            files(&args.rules, "--rules")?,
        ),
        true => {
            let named: Vec<PathBuf> = args.kernels.iter().map(PathBuf::from).collect();
            ("--kernel", "kernel", "kernel", files(&named, "--kernel")?)
        }
    };
    if levels.len() < 2 {
        bail_usage!("{option}: a list has two elements or more");
    }
    let question = match option {
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

/// The files of the arguments, and those of their folders in the order of their names.
fn files(named: &[PathBuf], option: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for path in named {
        if !path.is_dir() {
            all.push(path.display().to_string());
            continue;
        }
        let folder = path.display();
        let read = || -> io::Result<Vec<PathBuf>> {
            let entries = std::fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
            let is_hidden = |path: &Path| {
                path.file_name()
                    .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
            };
            let paths = entries.into_iter().map(|entry| entry.path());
            Ok(paths
                .filter(|path| path.is_file() && !is_hidden(path))
                .collect())
        };
        let read = read().with_context(|| format!("{option}: cannot read the folder {folder}"))?;
        let mut names: Vec<String> = read.iter().map(|path| path.display().to_string()).collect();
        names.sort_by(|a, b| by_numbers(a, b));
        all.extend(names);
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
