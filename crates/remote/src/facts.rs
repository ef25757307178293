//! How a host is configured: its interfaces, then the questions of `linerate_hosts::configuration`. Nothing is changed there.

use crate::{ExecutionTarget, Fault, Interrupt, Order, Result, survey};
use linerate_hosts::configuration::{MOST_BYTES, interfaces, listing, questions_of_test};
use linerate_hosts::systems::Kernel;
use linerate_linux::net::{Netns, programs};
use linerate_measure::record::{Collected, SlotFacts, VERSION};
use linerate_plan::sysctl::HIDDEN;
use std::net::IpAddr;

/// Asks a host about itself and these interfaces; without any, about its cards. `sudo`: by `sudo -n`.
///
/// # Errors
/// The host was lost, its system is not known here, or it does not have an interface.
pub fn facts(
    target: &ExecutionTarget,
    sudo: bool,
    wanted: &[String],
    interrupted: Interrupt<'_>,
) -> Result<SlotFacts> {
    let refuse = |said: String| target.error(Fault::Command, said);
    let uname = target.run(&Order::new("uname -s"), interrupted)?;
    let said = uname.text();
    let kernel = Kernel::said(&said).ok_or_else(|| {
        refuse(format!(
            "uname says {:?}: only Linux and the BSD systems are known",
            said.trim()
        ))
    })?;
    let listed = survey::collect(target, sudo, &[listing(kernel)], usize::MAX, interrupted)?;
    let listed = listed
        .into_iter()
        .next()
        .map_or_else(|| Ok(String::new()), |answer| answer.output);
    let there = interfaces(
        kernel,
        &listed.map_err(|why| refuse(format!("its interfaces are not known: {why}")))?,
    );
    let asked = if wanted.is_empty() {
        there
    } else {
        wanted.to_vec()
    };
    of_kernel(target, sudo, kernel, asked, &[], interrupted)
}

/// Asks a host with this kernel about itself, these interfaces, and the ways of a test's frames: their destinations, each with a source.
pub(crate) fn of_kernel(
    target: &ExecutionTarget,
    sudo: bool,
    kernel: Kernel,
    interfaces: Vec<String>,
    addresses: &[[IpAddr; 2]],
    interrupted: Interrupt<'_>,
) -> Result<SlotFacts> {
    let asked = questions_of_test(kernel, &interfaces, addresses);
    let mut answers = survey::collect(target, sudo, &asked, MOST_BYTES, interrupted)?;
    if let Some(namespace) = target.namespace() {
        own_programs(namespace, &mut answers);
    }
    if target.is_here() && kernel == Kernel::Linux {
        answers.push(sysctls_of_machine());
    }
    Ok(SlotFacts {
        version: VERSION,
        slot: 0,
        kernel: kernel.name().into(),
        interfaces,
        answers,
    })
}

/// On this machine, linerate asks the kernel for programs of tcx itself where the program that lists them is not there.
fn own_programs(namespace: &Netns, answers: &mut [Collected]) {
    let unanswered =
        |answer: &&mut Collected| answer.command == "programs" && answer.output.is_err();
    if let Some(answer) = answers.iter_mut().find(unanswered) {
        answer.output = programs::of_tcx(namespace).map_err(|error| error.to_string());
    }
}

/// Settings that the machine has once for all network namespaces, and does not show in them.
fn sysctls_of_machine() -> Collected {
    let read = |name: &str| {
        let value =
            std::fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
        Some(format!("{name} = {}\n", value.trim_end()))
    };
    let names = HIDDEN.split_ascii_whitespace();
    Collected {
        command: "sysctl of the machine".into(),
        output: Ok(names.filter_map(read).collect()),
    }
}
