//! The eBPF programs, as clang made them: how they are loaded, and their arrays in this process's memory.

use crate::error::{Doing, Error};
use crate::sockets::Mapping;
use aya::maps::xdp::DevMap;
use aya::maps::{Map, MapData};
use aya::programs::{Program, ProgramError, Xdp};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use std::collections::BTreeSet;
use std::io;
use std::marker::PhantomData;
use std::sync::{Mutex, OnceLock, PoisonError};

pub static GENERATOR: Object = Object::new(
    "generator",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/generator.bpf.o")),
);
pub static RECEIVER: Object = Object::new(
    "receiver",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/receiver.bpf.o")),
);
/// Both ends of connections.
pub static CONNECTIONS: Object = Object::new(
    "connections",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/connections.bpf.o")),
);
/// Programs that make a DUT.
pub static DUT: Object = Object::new(
    "dut",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/dut.bpf.o")),
);
/// Programs of AF_XDP sockets.
pub static SOCKETS: Object = Object::new(
    "xsk",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/xsk.bpf.o")),
);
/// Whether a driver transmits redirected frames.
pub static REDIRECT: Object = Object::relocated(
    "redirect",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.bpf.o")),
);
/// Samples of stacks.
pub static PROFILE: Object = Object::new(
    "profile",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/profile.bpf.o")),
);

/// Frames that the kernel drops.
pub static DROPS: Object = Object::relocated(
    "drops",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/drops.bpf.o")),
);
/// Times of frames in the stack.
pub static STAGES: Object = Object::relocated(
    "stages",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/stages.bpf.o")),
);
/// Waits for locks.
pub static LOCKS: Object = Object::relocated(
    "locks",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/locks.bpf.o")),
);

/// Programs that have a CPU.
pub static SWITCHES: Object = Object::relocated(
    "switches",
    include_bytes_aligned!(concat!(env!("OUT_DIR"), "/switches.bpf.o")),
);

/// An object file as clang made it. A process keeps its loader: aya parses the types of the whole kernel for each new one (15 ms),
/// and most of these programs have nothing to relocate against them.
pub struct Object {
    name: &'static str,
    bytes: &'static [u8],
    /// Whether its programs read types of the kernel: it then needs to know them.
    relocated: bool,
    loader: Mutex<Option<EbpfLoader<'static>>>,
}

impl Object {
    const fn new(name: &'static str, bytes: &'static [u8]) -> Object {
        Object {
            name,
            bytes,
            relocated: false,
            loader: Mutex::new(None),
        }
    }

    const fn relocated(name: &'static str, bytes: &'static [u8]) -> Object {
        Object {
            name,
            bytes,
            relocated: true,
            loader: Mutex::new(None),
        }
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
        let types = if self.relocated {
            Some(kernel_types()?)
        } else {
            None
        };
        let mut loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner);
        let loader = loader.get_or_insert_with(EbpfLoader::new);
        loader.btf(types);
        for &(name, value) in numbers {
            loader.override_global(name, kept(&value.to_ne_bytes()), true);
        }
        for &(name, value) in bytes {
            loader.override_global(name, kept(value), true);
        }
        for &(name, count) in elements {
            loader.map_max_entries(name, count);
        }
        loader
            .load(self.bytes)
            .map_err(|e| program_error(self.name, &e))
    }
}

/// The types of this kernel (BTF).
///
/// # Errors
/// The kernel has none.
pub fn kernel_types() -> Result<&'static Btf, Error> {
    static TYPES: OnceLock<Option<Btf>> = OnceLock::new();
    TYPES.get_or_init(|| Btf::from_sys_fs().ok()).as_ref().ok_or_else(|| {
        Error::Refused(
            "this kernel has no type information (/sys/kernel/btf/vmlinux): it was built without CONFIG_DEBUG_INFO_BTF".into(),
        )
    })
}

/// A copy of these bytes for as long as the process lives, once each: loads differ in a few settings.
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
    Error::Program {
        program: program.into(),
        reason: tail,
    }
}

/// How often a program is handed to the kernel at most: as often as by libbpf (`PROG_LOAD_ATTEMPTS`).
const ATTEMPTS: usize = 5;

/// Has the kernel verify a program. The verifier gives up with EAGAIN where a signal is pending, such as that of Ctrl-Z, which the
/// thread gets before the next attempt.
///
/// # Errors
/// The kernel refuses it.
pub fn verify(name: &str, mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), Error> {
    let mut attempts = 1;
    loop {
        match load() {
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.raw_os_error() == Some(libc::EAGAIN) && attempts < ATTEMPTS =>
            {
                attempts += 1;
            }
            ended => return ended.map_err(|e| program_error(name, &e)),
        }
    }
}

/// Loads the XDP program `name` of an object.
///
/// # Errors
/// The object lacks it, or the kernel refuses it.
pub fn load_xdp<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, Error> {
    let Some(Program::Xdp(program)) = ebpf.program_mut(name) else {
        return Err(Error::Refused(format!("there is no XDP program '{name}'")));
    };
    verify(name, || program.load())?;
    Ok(program)
}

/// Sets an element of a device map to an interface of the calling thread's namespace.
///
/// # Errors
/// The interface cannot transmit redirected frames.
pub fn set_devmap(ebpf: &mut Ebpf, name: &str, element: u32, ifindex: u32) -> Result<(), Error> {
    let missing = || Error::Refused(format!("there is no device map '{name}'"));
    let mut map =
        DevMap::try_from(ebpf.map_mut(name).ok_or_else(missing)?).map_err(|_| missing())?;
    map.set(element, ifindex, None, 0)
        .map_err(|e| program_error(name, &e))
}

/// A `BPF_MAP_TYPE_ARRAY` with `BPF_F_MMAPABLE`, as elements of `T`, which the kernel side reads and writes at the same
/// time: elements are copied out and in with volatile accesses, and each of their words is written by one side only.
pub struct MappedArray<T: Copy> {
    memory: Mapping,
    len: usize,
    _map: MapData,
    _elements: PhantomData<T>,
}

impl<T: Copy> MappedArray<T> {
    /// Takes the map `name` out of an object and maps `len` elements of it.
    ///
    /// # Errors
    /// There is no such array, or the kernel refuses to map it.
    pub fn take(ebpf: &mut Ebpf, name: &str, len: usize) -> Result<Self, Error> {
        assert_eq!(
            size_of::<T>() % 8,
            0,
            "array elements are rounded up to 8 bytes"
        );
        let Some(Map::Array(map)) = ebpf.take_map(name) else {
            return Err(Error::Refused(format!("there is no BPF array '{name}'")));
        };
        let bytes = (len * size_of::<T>()).next_multiple_of(4096);
        let memory = Mapping::shared(map.fd(), bytes, 0);
        let memory = memory.doing(format_args!("map BPF array {name}"))?;
        Ok(MappedArray {
            memory,
            len,
            _map: map,
            _elements: PhantomData,
        })
    }

    fn element(&self, index: usize) -> *mut T {
        assert!(index < self.len);
        self.memory.base().cast::<T>().wrapping_add(index)
    }

    /// A copy of element `index`; panics beyond the end.
    pub fn get(&self, index: usize) -> T {
        // SAFETY: within the mapping, aligned because mmap returns page-aligned memory; T is plain data.
        unsafe { self.element(index).read_volatile() }
    }

    /// Replaces element `index`; panics beyond the end.
    pub fn set(&self, index: usize, value: T) {
        // SAFETY: as in `get`.
        unsafe { self.element(index).write_volatile(value) }
    }

    /// Replaces the first elements.
    pub fn fill(&self, values: &[T]) {
        values
            .iter()
            .enumerate()
            .for_each(|(index, value)| self.set(index, *value));
    }

    /// Sets one 64-bit field of element `index`, at `offset` bytes, and touches nothing else of it: for fields that user
    /// space changes while the kernel side is at work on the others. Panics beyond the end.
    pub fn set_field(&self, index: usize, offset: usize, value: u64) {
        assert!(offset.is_multiple_of(8) && offset + 8 <= size_of::<T>());
        // SAFETY: within the element, and aligned because elements are multiples of 8 bytes.
        unsafe {
            self.element(index)
                .byte_add(offset)
                .cast::<u64>()
                .write_volatile(value)
        }
    }

    /// Copies of all elements.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len).map(|i| self.get(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aya_obj::VerifierLog;

    #[test]
    fn a_pending_signal_is_no_refusal_and_a_refusal_is_told_at_once() {
        // Attempts that fail with this error, and how many are made.
        for (error, fail, made) in [
            (libc::EAGAIN, 0, 1),
            (libc::EAGAIN, 3, 4),
            (libc::EAGAIN, 9, ATTEMPTS),
            (libc::EINVAL, 9, 1),
        ] {
            let mut attempts = 0;
            let ended = verify("test", || {
                attempts += 1;
                if attempts > fail {
                    return Ok(());
                }
                Err(ProgramError::LoadError {
                    io_error: io::Error::from_raw_os_error(error),
                    verifier_log: VerifierLog::new(String::new()),
                })
            });
            assert_eq!((attempts, ended.is_ok()), (made, attempts > fail));
        }
    }
}
