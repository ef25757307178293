//! A machine of its own for a test that looks at the state of the machine, or that kills: nothing of other tests is seen in it.

use std::ffi::CString;
use std::os::unix::fs::OpenOptionsExt;

/// The folder of linerate's state.
const STATE: &str = "/run/linerate";

/// Gives the rest of this test, and the programs that it starts, a mount table and a /run of their own. The turns on CPUs are still those
/// of all: loads of different tests do not disturb each other.
pub fn own_run() {
    unshare(libc::CLONE_NEWNS);
}

/// A network of its own as well. Settings that Linux has for the first network only cannot be changed then.
pub fn own_machine() {
    unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET);
    mount("sysfs", "/sys", "sysfs", 0);
    super::lab::ip("link set lo up").ok();
}

/// Namespaces belong to the thread that calls this, which runs one test, and to what it starts.
fn unshare(namespaces: libc::c_int) {
    // SAFETY: takes a number only.
    let done = unsafe { libc::unshare(namespaces) };
    assert_eq!(done, 0, "unshare: {}", std::io::Error::last_os_error());
    mount("none", "/", "", libc::MS_REC | libc::MS_PRIVATE);
    let turns = turns();
    let folder = super::Scratch::new();
    let new = folder.path().to_str().unwrap();
    mount("tmpfs", new, "tmpfs", 0);
    for made in ["netns", "sshd", "linerate"] {
        std::fs::create_dir(folder.path().join(made)).unwrap();
    }
    for turn in turns {
        let file = folder.file(&format!("linerate/{turn}"));
        std::fs::write(&file, "").unwrap();
        mount(&format!("{STATE}/{turn}"), &file, "", libc::MS_BIND);
    }
    mount(new, "/run", "", libc::MS_MOVE);
}

/// The locks by which linerates take turns: one for each CPU.
fn turns() -> Vec<String> {
    let cpus = std::fs::read_to_string("/sys/devices/system/cpu/present").unwrap();
    let last: u32 = cpus
        .trim()
        .rsplit(['-', ','])
        .next()
        .unwrap()
        .parse()
        .unwrap();
    std::fs::create_dir_all(STATE).unwrap();
    let lock = |cpu| {
        let name = format!("cpu-{cpu}");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(format!("{STATE}/{name}")).unwrap();
        name
    };
    (0..=last).map(lock).collect()
}

fn mount(from: &str, to: &str, kind: &str, flags: libc::c_ulong) {
    let [source, target, kind] = [from, to, kind].map(|text| CString::new(text).unwrap());
    // SAFETY: the texts end with a zero, and live until the call is over.
    let done = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            std::ptr::null(),
        )
    };
    assert_eq!(
        done,
        0,
        "mount {from} on {to}: {}",
        std::io::Error::last_os_error()
    );
}
