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

/// A program of dut.bpf.c, with the numbers that it is made for.
#[derive(Default)]
struct DutProgram {
    name: &'static str,
    rate: u32,
    one_in: u32,
    delay_ns: u32,
}

impl DutProgram {
    /// Passes everything.
    fn pass() -> DutProgram {
        DutProgram { name: "pass", ..DutProgram::default() }
    }

    /// The program that forwards in place of the kernel, or disturbs it; none for most kinds.
    fn of(dut: Dut) -> Option<DutProgram> {
        let none = DutProgram::default();
        Some(match dut {
            Dut::Xdp => DutProgram { name: "xdp_forward", ..none },
            Dut::KnownRate(rate) => DutProgram { name: "known_rate", rate, ..none },
            Dut::KnownLoss(one_in) => DutProgram { name: "known_loss", one_in, ..none },
            Dut::KnownDuplication(one_in) => DutProgram { name: "known_duplication", one_in, ..none },
            Dut::KnownDelay(ns) => DutProgram { name: "known_delay", delay_ns: ns as u32, ..none },
            _ => return None,
        })
    }

    fn load(&self) -> Result<Ebpf, LabError> {
        let cpus = bpf::possible_cpus() as u32;
        let constants = [
            ("RATE", &self.rate.to_ne_bytes()[..]),
            ("ONE_IN", &self.one_in.to_ne_bytes()),
            ("DELAY_NS", &self.delay_ns.to_ne_bytes()),
        ];
        Ok(bpf::DUT.load(&constants, &[("known", cpus), ("buckets", cpus)])?)
    }
}

/// Loads and attaches the programs that a setup needs.
pub(super) fn attach(dut: &DutEnd, setup: &Setup) -> Result<Attached, LabError> {
    let mut attached = Attached::default();
    let pass = setup.needs_pass().then(DutProgram::pass);
    for program in DutProgram::of(setup.settings.dut).into_iter().chain(pass) {
        let (name, mut ebpf) = (program.name, program.load()?);
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
                attached.known = Some(MappedArray::take(&mut ebpf, "known", bpf::possible_cpus())?);
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
    let mut ebpf = DutProgram::pass().load()?;
    attach_xdp(&mut ebpf, "pass", namespace, ifindex)?;
    Ok(ebpf)
}
