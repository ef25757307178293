//! Where the steps of each worker run.

use crate::cli::Conduct;
use linerate_import::conductor::{Test, Worker};
use linerate_linux::net::Netns;
use linerate_remote::{Connection, ExecutionTarget, RemoteError, Target};
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

/// Where the steps of a worker run.
pub struct Place {
    /// What records call it.
    pub at: String,
    /// This machine, or the host that is to be connected.
    reach: Result<ExecutionTarget, Target>,
}

/// Where each worker's steps run, or all that keeps them from it.
///
/// # Errors
/// A namespace is missing, or a mapping fits no worker.
pub fn find(args: &Conduct, test: &Test) -> Result<Vec<Place>, Vec<String>> {
    let mut wrong = Vec::new();
    // Of workers that take no part, nobody knows the address here.
    if args.workers.is_empty() {
        let named = |name: &str| test.workers.iter().any(|worker| is_called(worker, name));
        let unused = args.map.iter().filter(|(name, _)| !named(name));
        let why = "the test has no such worker, nor a player at such an address";
        wrong.extend(unused.map(|(name, to)| format!("--map {name}={to}: {why}")));
    }
    let mut places = Vec::new();
    for worker in &test.workers {
        match if args.local { local(worker) } else { Ok(over_ssh(worker, args)) } {
            Ok(place) => places.push(place),
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(places) } else { Err(wrong) }
}

/// Connects to the hosts, several at a time.
///
/// # Errors
/// Of each host that cannot be reached, why.
pub fn connect(places: Vec<Place>, cancelled: &AtomicBool) -> Result<Vec<ExecutionTarget>, Vec<RemoteError>> {
    let targets: Vec<Target> =
        places.iter().filter_map(|place| place.reach.as_ref().err().cloned()).collect();
    let mut connections = Connection::open_all(&targets, Some(cancelled)).into_iter();
    let (mut connected, mut errors) = (Vec::new(), Vec::new());
    for place in places {
        match place.reach {
            Ok(here) => connected.push(here),
            Err(_) => match connections.next().expect("an answer for each host") {
                Ok(connection) => connected.push(connection.into()),
                Err(error) => errors.push(error),
            },
        }
    }
    if errors.is_empty() { Ok(connected) } else { Err(errors) }
}

fn is_called(worker: &Worker, name: &str) -> bool {
    worker.name == name.to_lowercase() || worker.host == name
}

/// A mapping of a worker's name counts more than one of its address.
fn over_ssh(worker: &Worker, args: &Conduct) -> Place {
    let by_name = args.map.iter().rfind(|(name, _)| worker.name == name.to_lowercase());
    let found = by_name.or_else(|| args.map.iter().rfind(|(name, _)| worker.host == *name));
    let mut target = Target::new(found.map_or(&worker.host, |(_, to)| to)).named(&worker.name);
    target.config.clone_from(&args.ssh.ssh_config);
    target.accept_new = args.ssh.accept_new_keys;
    Place { at: target.address.clone(), reach: Err(target) }
}

fn local(worker: &Worker) -> Result<Place, String> {
    let name = worker.name.clone();
    let (at, netns) = match Netns::open(&worker.name) {
        Ok(netns) => (format!("network namespace {}", netns.label()), Some(netns)),
        Err(_) if is_loopback(&worker.host) => ("this machine".into(), None),
        Err(error) => {
            return Err(format!(
                "{name} ({}) cannot run here: {error}; make the namespace (ip netns add {name}), or leave --local out",
                worker.host
            ));
        }
    };
    Ok(Place { at, reach: Ok(ExecutionTarget::Here { name, netns }) })
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
