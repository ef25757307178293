//! Where the steps of each worker run.

use crate::cli::Conduct;
use linerate_import::conductor::{Test, Worker};
use linerate_linux::net::Netns;
use linerate_remote::{Connection, ExecutionTarget, RemoteError, Target};
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

/// Where the steps of a worker run, before there is a connection.
pub enum Where {
    /// On a host, over ssh.
    Ssh(Target),
    /// In a network namespace of this machine, or in its own.
    Here {
        /// The worker.
        name: String,
        /// The namespace.
        netns: Option<Netns>,
    },
}

impl Where {
    /// What records call it.
    pub fn name(&self) -> String {
        match self {
            Where::Ssh(target) => target.address.clone(),
            Where::Here { netns: Some(netns), .. } => format!("network namespace {}", netns.label()),
            Where::Here { netns: None, .. } => "this machine".into(),
        }
    }
}

/// Where each worker's steps run, or all that keeps them from it.
///
/// # Errors
/// A namespace is missing, or a mapping fits no worker.
pub fn find(args: &Conduct, test: &Test) -> Result<Vec<Where>, Vec<String>> {
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
pub fn connect(places: Vec<Where>, cancelled: &AtomicBool) -> Result<Vec<ExecutionTarget>, Vec<RemoteError>> {
    let target = |place: &Where| match place {
        Where::Ssh(target) => Some(target.clone()),
        Where::Here { .. } => None,
    };
    let targets: Vec<Target> = places.iter().filter_map(target).collect();
    let mut connections = Connection::open_all(&targets, Some(cancelled)).into_iter();
    let (mut connected, mut errors) = (Vec::new(), Vec::new());
    for place in places {
        match place {
            Where::Here { name, netns } => connected.push(ExecutionTarget::Here { name, netns }),
            Where::Ssh(_) => match connections.next().expect("an answer for each host") {
                Ok(connection) => connected.push(ExecutionTarget::Ssh(Box::new(connection))),
                Err(error) => errors.push(error),
            },
        }
    }
    if errors.is_empty() { Ok(connected) } else { Err(errors) }
}

fn is_called(worker: &Worker, name: &str) -> bool {
    worker.name == name.to_lowercase() || worker.host == name
}

/// What is said of a worker's name counts more than what is said of its address.
fn over_ssh(worker: &Worker, args: &Conduct) -> Where {
    let by_name = args.map.iter().rfind(|(name, _)| worker.name == name.to_lowercase());
    let found = by_name.or_else(|| args.map.iter().rfind(|(name, _)| worker.host == *name));
    let mut target = Target::new(found.map_or(&worker.host, |(_, to)| to)).named(&worker.name);
    target.config.clone_from(&args.ssh_config);
    target.accept_new = args.accept_new_keys;
    Where::Ssh(target)
}

fn local(worker: &Worker) -> Result<Where, String> {
    let name = worker.name.clone();
    match Netns::open(&worker.name) {
        Ok(netns) => Ok(Where::Here { name, netns: Some(netns) }),
        Err(_) if is_loopback(&worker.host) => Ok(Where::Here { name, netns: None }),
        Err(error) => Err(format!(
            "{name} ({}) cannot run here: {error}; make the namespace (ip netns add {name}), or leave --local out",
            worker.host
        )),
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
