//! `linerate advise`: which settings of a host should change.

use super::facts::{MOST, Source, configuration};
use crate::args::number;
use crate::prelude::*;
use linerate_advise::lines::{self, Chosen};
use linerate_advise::{Advice, Demands, Item, ROLES, Role, advise, version};
use linerate_hosts::configuration::Configuration;
use linerate_hosts::dut_changes::{content, content_of};
use linerate_linux::files::read;
use linerate_plan::diagnostic::suggestion;
use linerate_remote::{Finished, Order};
use linerate_report::format::FORMATS;

/// Recommend settings for a router, firewall, bridge or end host, with reasons and measured effects.
#[derive(Args)]
#[command(after_help = "Examples:
  sudo linerate advise                      this machine, in its present role
  linerate advise root@router               a host over ssh
  linerate advise ./router --connections 1M   the facts in this folder; a million connections
  linerate advise --role endhost --rtt 80ms   TCP buffers for such a path
  linerate advise ./router --format shell   a script that makes the changes
  linerate advise --format diff             for patch -d / -p1
  linerate advise --item linux-rps          this recommendation alone, by a name that `linerate advise` has printed
  linerate advise --role router --format plan >p.toml
                                            a plan: sudo linerate tune p.toml

Recommendations are sorted by expected gain x certainty. Gains were measured on other machines, which are \
named with their source. Gains from machines with your CPU and card are the most certain. Nothing is changed. In a script, a \
playbook and a diff, recommendations that must be measured first are comments, unless --item names them. \
docs/advise.md has all recommendations.

Exit status: 0 done; 1 the host cannot be read; 2 no such folder, or bad arguments; 130 Ctrl-C.")]
pub struct Advise {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    purpose: Purpose,

    /// Format of the output: text is a page, json the record. shell, ansible and diff are a script, a playbook and a patch that make
    /// the changes; plan is a plan for `linerate tune`
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    format: String,

    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Role of the host.
#[derive(Debug, Args)]
pub struct Purpose {
    /// Role of the host: router, firewall (a router that filters), bridge, endhost [default: concluded from
    /// whether the host forwards, and from its firewall's rules]
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<Role>,

    /// Release of the host's operating system, such as 11.1, if linerate cannot find it out
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    release: Option<String>,

    /// Only the recommendation with this name, as `linerate advise` prints it; can be repeated
    #[arg(long = "item", value_name = "NAME")]
    pub items: Vec<String>,

    /// Connections that a firewall must keep: 1000000, 5M [default: as many as it may keep now]
    #[arg(long, value_name = "N", value_parser = connections)]
    connections: Option<u64>,

    /// Round-trip time of an end host's connections
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    rtt: Duration,

    /// Bit rate of an end host's connections [default: that of its fastest link]
    #[arg(long, value_name = "RATE", value_parser = parse_link_speed)]
    rate: Option<f64>,
}

impl Purpose {
    /// The advice for a host with these facts: the items that were asked for.
    ///
    /// # Errors
    /// The host's system is not known, or it has no such item.
    pub fn advice(&self, mut found: Configuration) -> Result<Advice> {
        found.system.release = self.release.clone().or(found.system.release);
        let demands = Demands {
            role: self.role,
            rtt_ns: self.rtt.as_nanos() as f64,
            rate: self.rate,
            connections: self.connections,
        };
        let advice = advise(&found, demands).context("there is no advice for this system")?;
        let known = |name: &&String| advice.items.iter().any(|item| item.id == **name);
        if let Some(name) = self.items.iter().find(|name| !known(name)) {
            if let Some(rule) = linerate_advise::all().find(|rule| rule.id == name.as_str()) {
                bail_usage!(
                    "the recommendation '{name}' ({}) does not apply to this host: {}",
                    rule.title,
                    rule.unfit(&found, demands)
                );
            }
            let ids: Vec<&str> = advice.items.iter().map(|item| item.id.as_str()).collect();
            bail_usage!(
                "there is no recommendation '{name}' for this host: {}",
                suggestion(name, ids)
            );
        }
        let chosen = |item: &Item| self.items.is_empty() || self.items.contains(&item.id);
        let items = advice
            .items
            .iter()
            .filter(|item| chosen(item))
            .cloned()
            .collect();
        Ok(advice.with(items))
    }
}

fn role(text: &str) -> Result<Role, String> {
    let names = ROLES.map(|role| role.to_string().replace(' ', ""));
    let at = names.iter().position(|name| name == text);
    at.map(|at| ROLES[at])
        .ok_or_else(|| suggestion(text, names.iter().map(String::as_str)))
}

fn connections(text: &str) -> Result<u64, String> {
    number(text, 1, 1_000_000_000)
}

fn release(text: &str) -> Result<String, String> {
    match version(text) {
        Some(_) => Ok(text.into()),
        None => Err("write a number such as 13.2".into()),
    }
}

fn formats() -> impl TypedValueParser<Value = String> {
    let names = FORMATS
        .iter()
        .map(|format| format.name())
        .chain(lines::FORMS.iter().map(|(name, _)| *name));
    PossibleValuesParser::new(names.collect::<Vec<_>>())
}

/// Runs the verb.
///
/// # Errors
/// The host or the folder cannot be read.
pub fn run(args: &Advise) -> Exit {
    let Some(facts) = args.source.facts()? else {
        return exit(INTERRUPTED);
    };
    let found = configuration(&facts)?;
    let advice = args.purpose.advice(found.clone())?;
    let form = lines::FORMS.iter().find(|(name, _)| *name == args.format);
    match form {
        Some((name, write)) => {
            let mut chosen = Chosen::of(&advice.items, !args.purpose.items.is_empty());
            chosen.path = advice.path;
            if *name == lines::DIFF {
                chosen.texts = texts(
                    &args.source,
                    &found,
                    lines::files(&chosen.items).into_keys(),
                )?;
            }
            print(&write(&chosen));
        }
        None if args.json || args.format == "json" => print_json(&advice)?,
        None => show(
            named(&args.format),
            &pages::advice(args.source.name(), &advice),
        ),
    }
    DONE
}

/// The texts of a host's files, as far as they can be read. A saved folder has them if it is a file system tree; a file of linerate's
/// own that the facts do not name is not there.
fn texts<'a>(
    source: &Source,
    found: &Configuration,
    files: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, Option<String>>> {
    let folder = source
        .place
        .as_deref()
        .map(Path::new)
        .filter(|place| place.exists());
    let host = if folder.is_none() {
        Some(source.target()?)
    } else {
        None
    };
    let text = |file: &str| {
        if let Some(host) = &host {
            let order = Order::program(&content_of(file).program.argv).by_sudo(source.sudo);
            let answer = host
                .run(&order, Some(&interrupt::INTERRUPTED))
                .ok()
                .filter(Finished::is_success)?;
            return Some(content(&answer.text()).map(String::from));
        }
        let saved = folder?.join(file.trim_start_matches('/'));
        let absent = || {
            file.contains("linerate") && !found.boot.contains_key(file)
                || folder.is_some_and(|folder| folder.join("etc").is_dir())
        };
        read(&saved, MOST)
            .map(|bytes| Some(String::from_utf8_lossy(&bytes).into_owned()))
            .ok()
            .or_else(|| absent().then_some(None))
    };
    Ok(files
        .filter_map(|file| Some((file.to_string(), text(file)?)))
        .collect())
}
