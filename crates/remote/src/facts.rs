//! How a host is configured: its interfaces, then the questions of `linerate_hosts::configuration`. Nothing is changed there.

use crate::collectors::sysctls_of_machine;
use crate::{ExecutionTarget, Fault, Interrupt, Order, RemoteError, Result, survey};
use linerate_hosts::configuration::{MOST_BYTES, interfaces, listing, questions};
use linerate_hosts::systems::Kernel;
use linerate_measure::record::{SlotFacts, VERSION};

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
    let refuse = |said: String| RemoteError::new(target.name(), Fault::Command, said);
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
    let mut answers = survey::collect(
        target,
        sudo,
        &questions(kernel, &asked),
        MOST_BYTES,
        interrupted,
    )?;
    if target.is_here() && kernel == Kernel::Linux {
        answers.push(sysctls_of_machine());
    }
    Ok(SlotFacts {
        version: VERSION,
        slot: 0,
        kernel: kernel.name().into(),
        interfaces: asked,
        answers,
    })
}
