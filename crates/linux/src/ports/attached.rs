//! XDP programs on interfaces: how they are attached, and take each other's place.

use crate::bpf;
use crate::error::Error;
use crate::net::Netns;
use aya::Ebpf;
use aya::programs::xdp::{XdpLink, XdpLinkId, XdpMode};
use aya::programs::{Program, ProgramError, Xdp};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long an interface may still have the program before: a process that another thread is about to start has the descriptors of
/// this one until it begins.
const HELD: Duration = Duration::from_secs(5);

/// A program on an interface, which its end takes off.
pub(super) struct Attached {
    /// Whether the program knows of frames in several pieces.
    pub frags: bool,
    pub link: Option<XdpLink>,
}

/// A program, and the same for frames in several pieces.
pub(super) type Names = [&'static str; 2];

impl Attached {
    /// Puts a program of another object in the place of this one.
    pub fn hand_over(
        self,
        to: &mut Ebpf,
        names: Names,
        namespace: &Netns,
        ifindex: u32,
    ) -> Result<Attached, Error> {
        let name = names[usize::from(self.frags)];
        let Some(link) = self.link else {
            return Err(Error::Refused(format!(
                "{name} is no longer on its interface"
            )));
        };
        let next = bpf::load_xdp(to, name)?;
        let attached = namespace.enter(|| next.attach_to_link(link))?;
        let link = taken(next, attached.map_err(|e| not_attached(name, ifindex, e))?)?;
        Ok(Attached {
            link: Some(link),
            ..self
        })
    }
}

/// A veth whose other end has a large MTU, or a card with one, takes only programs that know of frames in several pieces (Linux 5.18).
pub(super) fn attach_for_any_mtu(
    mode: XdpMode,
    ebpf: &mut Ebpf,
    [name, name_frags]: Names,
    namespace: &Netns,
    ifindex: u32,
) -> Result<Attached, Error> {
    let (frags, id) = match attach_as(mode, ebpf, name, namespace, ifindex) {
        Err(e) if e.errno() == Some(libc::ERANGE) => {
            (true, attach_as(mode, ebpf, name_frags, namespace, ifindex)?)
        }
        other => (false, other?),
    };
    let name = if frags { name_frags } else { name };
    let Some(Program::Xdp(program)) = ebpf.program_mut(name) else {
        return Err(Error::Refused(format!("there is no XDP program '{name}'")));
    };
    Ok(Attached {
        frags,
        link: Some(taken(program, id)?),
    })
}

/// The link of a program, which would otherwise go with it.
fn taken(program: &mut Xdp, id: XdpLinkId) -> Result<XdpLink, Error> {
    program
        .take_link(id)
        .map_err(|e| bpf::program_error("receiver", &e))
}

pub(super) fn not_attached(program: &str, ifindex: u32, error: ProgramError) -> Error {
    match error {
        ProgramError::SyscallError(e) => Error::system(
            format_args!("attach an XDP program to interface number {ifindex}"),
            e.io_error,
        ),
        _ => bpf::program_error(program, &error),
    }
}

/// Loads and attaches the XDP program `name` of an object: in the driver if possible, generic otherwise.
///
/// # Errors
/// The kernel's refusal.
pub fn attach(
    ebpf: &mut Ebpf,
    name: &str,
    namespace: &Netns,
    ifindex: u32,
) -> Result<XdpLinkId, Error> {
    attach_as(XdpMode::Default, ebpf, name, namespace, ifindex)
}

fn attach_as(
    mode: XdpMode,
    ebpf: &mut Ebpf,
    name: &str,
    namespace: &Netns,
    ifindex: u32,
) -> Result<XdpLinkId, Error> {
    let program = bpf::load_xdp(ebpf, name)?;
    let began = Instant::now();
    loop {
        let attached = namespace.enter(|| program.attach_to_if_index(ifindex, mode))?;
        match attached.map_err(|e| not_attached(name, ifindex, e)) {
            Err(e) if e.errno() == Some(libc::EBUSY) && began.elapsed() < HELD => {
                std::thread::sleep(Duration::from_millis(2));
            }
            attached => return attached,
        }
    }
}

/// A program on an interface that passes all frames, for as long as one of its owners lives.
pub(super) struct Pass {
    attached: Mutex<Option<Attached>>,
    _ebpf: Ebpf,
}

/// All of this process, by the inode of the namespace and the number of the interface.
static PASSES: Mutex<Vec<(u64, u32, Weak<Pass>)>> = Mutex::new(Vec::new());

impl Pass {
    /// Attaches the program in the driver.
    pub fn attach(namespace: &Netns, ifindex: u32) -> Result<Arc<Pass>, Error> {
        let mut ebpf = bpf::SOCKETS.load(&[], &[], &[])?;
        let names = ["pass", "pass_frags"];
        let attached = attach_for_any_mtu(XdpMode::Driver, &mut ebpf, names, namespace, ifindex)?;
        let pass = Arc::new(Pass {
            attached: Mutex::new(Some(attached)),
            _ebpf: ebpf,
        });
        let mut passes = PASSES.lock().unwrap_or_else(PoisonError::into_inner);
        passes.retain(|(.., pass)| pass.strong_count() > 0);
        passes.push((namespace.inode(), ifindex, Arc::downgrade(&pass)));
        Ok(pass)
    }

    /// The program that is on an interface.
    pub fn on(namespace: &Netns, ifindex: u32) -> Option<Arc<Pass>> {
        let passes = PASSES.lock().unwrap_or_else(PoisonError::into_inner);
        let there =
            |(inode, index, _): &&(u64, u32, _)| (*inode, *index) == (namespace.inode(), ifindex);
        passes
            .iter()
            .filter(there)
            .find_map(|(.., pass)| pass.upgrade())
    }
}

/// Takes over the place of a program that passes all frames: any other program serves the driver as well.
pub(super) fn give_way(namespace: &Netns, ifindex: u32) -> Option<Attached> {
    let pass = Pass::on(namespace, ifindex)?;
    pass.attached
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
}
