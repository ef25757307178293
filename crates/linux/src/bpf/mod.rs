//! The eBPF programs, as clang made them, and how they are loaded.

use crate::ports::PortError;
use aya::maps::xdp::DevMap;
use aya::programs::{Program, Xdp};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

pub const GENERATOR: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/generator.bpf.o"));
pub const RECEIVER: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receiver.bpf.o"));
/// Programs that make a DUT.
pub const DUT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/dut.bpf.o"));

/// A loader for these programs, which have nothing to relocate against the kernel's own types.
pub fn loader<'a>() -> EbpfLoader<'a> {
    let mut loader = EbpfLoader::new();
    loader.btf(None);
    loader
}

/// CPU numbers go from 0 to this, exclusive: the length of arrays with one element per CPU.
pub fn cpu_slots(cpus: &[u32]) -> usize {
    cpus.iter().copied().max().map_or(1, |m| m as usize + 1).max(possible_cpus())
}

/// Number of CPUs that the kernel may ever bring up: numbers in per-CPU arrays stay below it.
pub fn possible_cpus() -> usize {
    aya::util::nr_cpus().map_or(1, |n| n)
}

/// An aya error as ours: the verifier's log is long, its last lines say why.
pub fn program_error(program: &str, error: &dyn std::error::Error) -> PortError {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && io.raw_os_error() == Some(libc::EPERM)
        {
            return PortError::System {
                operation: "load",
                object: format!("the eBPF program {program}"),
                source: io::Error::from_raw_os_error(libc::EPERM),
            };
        }
        reason = format!("{reason}: {inner}");
        source = inner.source();
    }
    let lines: Vec<&str> = reason.lines().filter(|l| !l.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(6)..].join("; ");
    PortError::Program { program: program.into(), reason: tail }
}

/// Loads one XDP program of an object; its descriptor is for BPF_PROG_RUN.
///
/// # Errors
/// The kernel refuses it.
pub fn load_xdp(ebpf: &mut Ebpf, name: &str) -> Result<OwnedFd, PortError> {
    let program = xdp(ebpf, name)?;
    program.load().map_err(|e| program_error(name, &e))?;
    let fd = program.fd().map_err(|e| program_error(name, &e))?;
    fd.as_fd().try_clone_to_owned().map_err(PortError::system("duplicate the descriptor of", name))
}

/// The XDP program `name` of an object.
///
/// # Errors
/// There is none.
pub fn xdp<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, PortError> {
    match ebpf.program_mut(name) {
        Some(Program::Xdp(program)) => Ok(program),
        _ => Err(PortError::Unsuitable(format!("there is no XDP program '{name}'"))),
    }
}

/// Sets an element of a device map to an interface of the calling thread's namespace.
///
/// # Errors
/// The interface cannot transmit redirected frames.
pub fn set_devmap(ebpf: &mut Ebpf, name: &str, element: u32, ifindex: u32) -> Result<(), PortError> {
    let missing = || PortError::Unsuitable(format!("there is no device map '{name}'"));
    let mut map = DevMap::try_from(ebpf.map_mut(name).ok_or_else(missing)?).map_err(|_| missing())?;
    map.set(element, ifindex, None, 0).map_err(|e| program_error(name, &e))
}
