//! DUTs that are eBPF programs, and the program that keeps an interface polled.

use super::dut::Known;
use super::{DutEnd, LabError, Setup};
use crate::bpf;
use crate::net::Netns;
use crate::ports::PortError;
use crate::ports::mapped::MappedArray;
use crate::ports::xdp_receiver::attach as attach_xdp;
use aya::Ebpf;
use aya::programs::{Program, TcAttachType};
use linerate_plan::settings::Dut;

/// Attached programs; dropped, they are detached.
#[derive(Default)]
pub(super) struct Attached {
    pub programs: Vec<Ebpf>,
    pub known: Option<MappedArray<Known>>,
}

/// Loads and attaches the programs that a setup needs.
pub(super) fn attach(dut: &DutEnd, setup: &Setup) -> Result<Attached, LabError> {
    let mut attached = Attached::default();
    let (rate, one_in, delay, name) = match setup.dut {
        Dut::Xdp => (0, 0, 0, Some("xdp_forward")),
        Dut::KnownRate(rate) => (rate, 0, 0, Some("known_rate")),
        Dut::KnownLoss(n) => (0, n, 0, Some("known_loss")),
        Dut::KnownDuplication(n) => (0, n, 0, Some("known_duplication")),
        Dut::KnownDelay(ns) => (0, 0, ns as u32, Some("known_delay")),
        _ => (0, 0, 0, None),
    };
    let names = name.into_iter().chain(setup.needs_pass().then_some("pass"));
    let cpus = bpf::possible_cpus();
    for name in names {
        let mut ebpf = bpf::loader()
            .override_global("RATE", &rate, true)
            .override_global("ONE_IN", &one_in, true)
            .override_global("DELAY_NS", &delay, true)
            .map_max_entries("known", cpus as u32)
            .map_max_entries("buckets", cpus as u32)
            .load(bpf::DUT)
            .map_err(|e| bpf::program_error(name, &e))?;
        match name {
            "known_duplication" => attach_egress(&mut ebpf, name, dut)?,
            _ => attach_xdp(&mut ebpf, name, &dut.inside_node().namespace, dut.inside.index)?,
        }
        match name {
            "xdp_forward" => {
                let entered =
                    dut.namespace.enter(|| bpf::set_devmap(&mut ebpf, "egress", 0, dut.outside.index));
                entered.map_err(PortError::system("enter", "the DUT's namespace"))??;
            }
            "pass" => {}
            _ => {
                let map = ebpf.take_map("known").expect("dut.bpf.c defines it");
                attached.known = Some(MappedArray::new("known", map, cpus)?);
            }
        }
        attached.programs.push(ebpf);
    }
    Ok(attached)
}

fn attach_egress(ebpf: &mut Ebpf, name: &str, dut: &DutEnd) -> Result<(), LabError> {
    let Some(Program::SchedClassifier(program)) = ebpf.program_mut(name) else {
        return Err(LabError::Unsuitable(format!("there is no classifier '{name}'")));
    };
    program.load().map_err(|e| bpf::program_error(name, &e))?;
    let attached = dut.namespace.enter(|| {
        // Kernels before 6.6 need the qdisc that later ones do without.
        let _ = aya::programs::tc::qdisc_add_clsact(&dut.outside.name);
        program.attach(&dut.outside.name, TcAttachType::Egress)
    });
    let attached = attached.map_err(PortError::system("enter", "the DUT's namespace"))?;
    attached.map_err(|e| bpf::program_error(name, &e))?;
    Ok(())
}

/// Attaches the program that passes everything, to find out whether this kernel can.
///
/// # Errors
/// The kernel refuses the program.
pub(super) fn try_pass(namespace: &Netns, ifindex: u32) -> Result<Ebpf, LabError> {
    let mut ebpf = bpf::loader()
        .map_max_entries("known", 1)
        .map_max_entries("buckets", 1)
        .load(bpf::DUT)
        .map_err(|e| bpf::program_error("pass", &e))?;
    attach_xdp(&mut ebpf, "pass", namespace, ifindex)?;
    Ok(ebpf)
}
