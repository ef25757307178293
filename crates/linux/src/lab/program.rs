//! DUTs that are eBPF programs, and the program that keeps an interface polled.

use super::{DutEnd, Setup};
use crate::bpf::{self, MappedArray};
use crate::error::Error;
use crate::net::Netns;
use crate::ports::xdp_receiver::attach as attach_xdp;
use aya::Ebpf;
use aya::programs::{Program, TcAttachType};
use linerate_plan::settings::Dut;

/// The program of dut.bpf.c that forwards in place of the kernel, or disturbs it, with its constants; none for most kinds.
fn program(dut: Dut) -> Option<(&'static str, Constants)> {
    Some(match dut {
        Dut::Xdp => ("xdp_forward", [0; 3]),
        Dut::KnownRate(rate) => ("known_rate", [rate, 0, 0]),
        Dut::KnownLoss(one_in) => ("known_loss", [0, one_in, 0]),
        Dut::KnownDuplication(one_in) => ("known_duplication", [0, one_in, 0]),
        Dut::KnownDelay(ns) => ("known_delay", [0, 0, ns as u32]),
        _ => return None,
    })
}

/// Frames a second, one in this many frames, nanoseconds.
type Constants = [u32; 3];

fn load(constants: Constants) -> Result<Ebpf, Error> {
    let cpus = bpf::possible_cpus() as u32;
    let [rate, one_in, delay_ns] = constants;
    let numbers = [("RATE", rate), ("ONE_IN", one_in), ("DELAY_NS", delay_ns)];
    bpf::DUT.load(&numbers, &[], &[("known", cpus), ("buckets", cpus)])
}

/// Loads and attaches the programs that a setup needs. They are detached when the DUT goes.
pub(super) fn attach(dut: &mut DutEnd, setup: &Setup) -> Result<(), Error> {
    let pass = setup.needs_pass().then_some(("pass", [0; 3]));
    for (name, constants) in program(setup.settings.dut).into_iter().chain(pass) {
        let mut ebpf = load(constants)?;
        match name {
            "known_duplication" => attach_egress(&mut ebpf, name, dut)?,
            _ => attach_xdp(&mut ebpf, name, &dut.inside.node.namespace, dut.inside.index)?,
        }
        match name {
            "xdp_forward" => {
                dut.namespace.run(|| bpf::set_devmap(&mut ebpf, "egress", 0, dut.outside.index))?;
            }
            "pass" => {}
            _ => dut.known = Some(MappedArray::take(&mut ebpf, "known", bpf::possible_cpus())?),
        }
        dut.programs.push(ebpf);
    }
    Ok(())
}

fn attach_egress(ebpf: &mut Ebpf, name: &str, dut: &DutEnd) -> Result<(), Error> {
    let Some(Program::SchedClassifier(program)) = ebpf.program_mut(name) else {
        return Err(Error::Refused(format!("there is no classifier '{name}'")));
    };
    program.load().map_err(|e| bpf::program_error(name, &e))?;
    let attached = dut.namespace.enter(|| {
        // Kernels before 6.6 need the qdisc that later ones do without.
        let _ = aya::programs::tc::qdisc_add_clsact(&dut.outside.name);
        program.attach(&dut.outside.name, TcAttachType::Egress)
    })?;
    attached.map(drop).map_err(|e| bpf::program_error(name, &e))
}

/// Attaches the program that passes everything, to find out whether this kernel can.
///
/// # Errors
/// The kernel refuses the program.
pub(super) fn try_pass(namespace: &Netns, ifindex: u32) -> Result<Ebpf, Error> {
    let mut ebpf = load([0; 3])?;
    attach_xdp(&mut ebpf, "pass", namespace, ifindex)?;
    Ok(ebpf)
}
