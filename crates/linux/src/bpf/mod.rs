//! The eBPF programs, as clang made them, and how they are loaded.

use crate::error::Error;
use aya::maps::xdp::DevMap;
use aya::programs::{Program, Xdp};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

pub static GENERATOR: Object =
    Object::new("generator", include_bytes_aligned!(concat!(env!("OUT_DIR"), "/generator.bpf.o")));
pub static RECEIVER: Object =
    Object::new("receiver", include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receiver.bpf.o")));
/// Programs that make a DUT.
pub static DUT: Object = Object::new("dut", include_bytes_aligned!(concat!(env!("OUT_DIR"), "/dut.bpf.o")));
/// Programs of AF_XDP sockets.
pub static SOCKETS: Object =
    Object::new("xsk", include_bytes_aligned!(concat!(env!("OUT_DIR"), "/xsk.bpf.o")));

/// An object file as clang made it. A process keeps its loader: aya parses the types of the whole kernel for each new one (15 ms),
/// and these programs have nothing to relocate against them.
pub struct Object {
    name: &'static str,
    bytes: &'static [u8],
    loader: Mutex<Option<EbpfLoader<'static>>>,
}

impl Object {
    const fn new(name: &'static str, bytes: &'static [u8]) -> Object {
        Object { name, bytes, loader: Mutex::new(None) }
    }

    /// Loads the maps with these numbers of elements, and constants: numbers, and others with the bytes that they have in C. Other
    /// values keep those of the last load: name all values that the programs to be used depend on.
    ///
    /// # Errors
    /// The kernel refuses the maps, or there is no such constant.
    pub fn load(
        &self,
        numbers: &[(&'static str, u32)],
        bytes: &[(&'static str, &[u8])],
        elements: &[(&'static str, u32)],
    ) -> Result<Ebpf, Error> {
        let mut loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
        let loader = loader.get_or_insert_with(|| {
            let mut loader = EbpfLoader::new();
            loader.btf(None);
            loader
        });
        for &(name, value) in numbers {
            loader.override_global(name, kept(&value.to_ne_bytes()), true);
        }
        for &(name, value) in bytes {
            loader.override_global(name, kept(value), true);
        }
        for &(name, count) in elements {
            loader.map_max_entries(name, count);
        }
        loader.load(self.bytes).map_err(|e| program_error(self.name, &e))
    }
}

/// The same bytes for as long as the process lives, once each: loads differ in a few settings.
fn kept(value: &[u8]) -> &'static [u8] {
    static KEPT: Mutex<BTreeSet<&'static [u8]>> = Mutex::new(BTreeSet::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = all.get(value) {
        return same;
    }
    let new: &'static [u8] = Box::leak(value.into());
    all.insert(new);
    new
}

/// Number of CPUs that the kernel may ever bring up, and length of arrays with one element for each: numbers stay below it.
pub fn possible_cpus() -> usize {
    aya::util::nr_cpus().unwrap_or(1)
}

/// An aya error as ours: the verifier's log is long, its last lines say why.
pub fn program_error(program: &str, error: &dyn std::error::Error) -> Error {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && io.raw_os_error() == Some(libc::EPERM)
        {
            let source = io::Error::from_raw_os_error(libc::EPERM);
            return Error::system(format_args!("load the eBPF program {program}"), source)
                .naming_privileges();
        }
        reason = format!("{reason}: {inner}");
        source = inner.source();
    }
    let lines: Vec<&str> = reason.lines().filter(|l| !l.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(6)..].join("; ");
    Error::Program { program: program.into(), reason: tail }
}

/// Loads the XDP program `name` of an object.
///
/// # Errors
/// The object lacks it, or the kernel refuses it.
pub fn load_xdp<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, Error> {
    let Some(Program::Xdp(program)) = ebpf.program_mut(name) else {
        return Err(Error::Refused(format!("there is no XDP program '{name}'")));
    };
    program.load().map_err(|e| program_error(name, &e))?;
    Ok(program)
}

/// Sets an element of a device map to an interface of the calling thread's namespace.
///
/// # Errors
/// The interface cannot transmit redirected frames.
pub fn set_devmap(ebpf: &mut Ebpf, name: &str, element: u32, ifindex: u32) -> Result<(), Error> {
    let missing = || Error::Refused(format!("there is no device map '{name}'"));
    let mut map = DevMap::try_from(ebpf.map_mut(name).ok_or_else(missing)?).map_err(|_| missing())?;
    map.set(element, ifindex, None, 0).map_err(|e| program_error(name, &e))
}
