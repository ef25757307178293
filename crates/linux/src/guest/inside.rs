//! The work of linerate in a guest: as its first program, and where the kernel asks for a module.

use super::machine::PORT;
use super::modules;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// File systems and where they are mounted, in this order.
const MOUNTS: [(&str, &str); 7] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/run"),
    ("tmpfs", "/tmp"),
    ("bpf", "/sys/fs/bpf"),
    ("tracefs", "/sys/kernel/tracing"),
];

/// How long the port may take to appear.
const WITHIN: Duration = Duration::from_secs(60);

/// The part of this process, by the name that it was started by: linerate has no other name inside a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first program of a guest.
    First,
    /// The program that the kernel asks for a module.
    Modprobe,
}

/// The part that this process has; `None` outside of a guest.
pub fn part() -> Option<Part> {
    match std::env::args_os().next()?.to_str()? {
        "/init" if std::process::id() == 1 => Some(Part::First),
        "/sbin/modprobe" => Some(Part::Modprobe),
        _ => None,
    }
}

/// Makes the guest fit for measurements, and opens the port to the host.
///
/// # Errors
/// The kernel lacks what the guest needs.
pub fn begin() -> io::Result<File> {
    for (kind, at) in MOUNTS {
        let mounted = mount(kind, at, kind, MountFlags::empty(), None);
        // Kernels without tracing or BPF's file system are measured as well.
        if let (Err(e), false) = (mounted, at.starts_with("/sys/")) {
            return Err(told(&format!("mount {kind} at {at}"), e.into()));
        }
    }
    for name in modules::CHANNEL {
        load(name)?;
    }
    for name in modules::OF_CPU {
        // A CPU without these instructions refuses the module.
        let _ = load(name);
    }
    let began = Instant::now();
    let device = loop {
        match port() {
            Some(device) => break device,
            None if began.elapsed() > WITHIN => {
                let why = "there is none: is virtio_console (CONFIG_VIRTIO_CONSOLE) missing?";
                return Err(told("find the port to the host", io::Error::other(why)));
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    let open = || File::options().read(true).write(true).open(&device);
    open().map_err(|e| told(&format!("open {device}"), e))
}

/// Ends the guest. Returns only where that is not possible.
pub fn end() {
    let _ = reboot(RebootCommand::Restart);
}

fn told(what: &str, error: io::Error) -> io::Error {
    io::Error::other(format!("cannot {what}: {error}"))
}

/// The device of the port.
fn port() -> Option<String> {
    let all = fs::read_dir("/sys/class/virtio-ports").ok()?;
    let named = |entry: &fs::DirEntry| {
        fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.trim() == PORT)
    };
    let port = all.flatten().find(named)?;
    Some(format!("/dev/{}", port.file_name().to_str()?))
}

/// Loads a module and the modules that it depends on. Returns whether the file system has the module.
fn load(name: &str) -> io::Result<bool> {
    let folder = Path::new("/lib/modules");
    let order = modules::order(&fs::read_to_string(folder.join("index"))?, name);
    for module in &order {
        if Path::new("/sys/module").join(module).exists() {
            continue;
        }
        let Ok(file) = File::open(folder.join(format!("{module}.ko"))) else {
            continue;
        };
        match finit_module(&file, c"", 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(told(&format!("load module {module}"), e.into())),
        }
    }
    Ok(!order.is_empty())
}

/// As modprobe: options, and then a module's name. Returns its exit status.
pub fn modprobe() -> u8 {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |option: &str| words.iter().any(|word| word == option);
    let Some(name) = words.iter().find(|word| !word.starts_with('-')) else {
        return 1;
    };
    let index = fs::read_to_string("/lib/modules/index").unwrap_or_default();
    let known = !modules::order(&index, name).is_empty();
    if has("-n") || !known {
        if !known && !has("-q") {
            eprintln!("modprobe: the guest has no module {name}");
        }
        return u8::from(!known);
    }
    // Nothing is removed from a guest, which ends with its campaign.
    match has("-r") || load(name).is_ok() {
        true => 0,
        false => 1,
    }
}
