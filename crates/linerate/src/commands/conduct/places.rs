//! Where the steps of each worker run.

use super::Conduct;
use crate::interrupt::INTERRUPTED as STOP;
use linerate_import::conductor::{Test, Worker};
use linerate_linux::net::Netns;
use linerate_remote::{Connection, ExecutionTarget, Target};
use std::net::IpAddr;

/// Name in records of the place where the steps of a worker run, and its target.
pub type Place = (String, ExecutionTarget);

/// Mappings that fit no worker. Addresses of workers that take no part are unknown here.
pub fn unused_mappings(args: &Conduct, test: &Test) -> Vec<String> {
    let named = |name: &str| test.workers.iter().any(|worker| is_called(worker, name));
    let unused = args.map.iter().filter(|(name, _)| args.workers.is_empty() && !named(name));
    let why = "the test has no such worker, nor a player at such an address";
    unused.map(|(name, to)| format!("--map {name}={to}: {why}")).collect()
}

fn is_called(worker: &Worker, name: &str) -> bool {
    worker.name == name.to_lowercase() || worker.host == name
}

/// The hosts of all workers, connected several at a time; or why each cannot be reached.
pub fn over_ssh(args: &Conduct, test: &Test) -> Vec<Result<Place, String>> {
    let targets: Vec<Target> = test.workers.iter().map(|worker| target(worker, args)).collect();
    let connections = Connection::open_all(&targets, Some(&STOP)).into_iter().zip(targets);
    let place = |(connection, target): (Result<Connection, _>, Target)| match connection {
        Ok(connection) => Ok((target.address, connection.into())),
        Err(error) => Err(linerate_remote::RemoteError::to_string(&error)),
    };
    connections.map(place).collect()
}

/// A mapping of a worker's name counts more than one of its address.
fn target(worker: &Worker, args: &Conduct) -> Target {
    let by_name = args.map.iter().rfind(|(name, _)| worker.name == name.to_lowercase());
    let found = by_name.or_else(|| args.map.iter().rfind(|(name, _)| worker.host == *name));
    let mut target = Target::new(found.map_or(&worker.host, |(_, to)| to)).named(&worker.name);
    target.config.clone_from(&args.ssh.ssh_config);
    target.accept_new = args.ssh.accept_new_keys;
    target
}

/// The namespaces of all workers on this machine; or why one cannot run here.
pub fn local(test: &Test) -> Vec<Result<Place, String>> {
    test.workers.iter().map(of_this_machine).collect()
}

fn of_this_machine(worker: &Worker) -> Result<Place, String> {
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
    Ok((at, ExecutionTarget::Here { name, netns }))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
