//! The file system of a guest: linerate itself, the tools that rule sets need, their libraries, and the kernel's modules.

use super::archive::Archive;
use super::{GuestError, Kernel, elf, modules};
use crate::process::{self, Job};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that are mounted over or written to.
const FOLDERS: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tmp", "/root"];
/// Where iptables looks for its matches and targets.
const EXTENSIONS: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/xtables",
    "/usr/lib64/xtables",
    "/usr/lib/xtables",
];
/// Tables of names that tools read.
const TABLES: [&str; 3] = ["/etc/protocols", "/etc/services", "/etc/ethertypes"];

/// The file system for a guest with this kernel. Tools that this machine lacks are left out: the guest names the variants that need them.
///
/// # Errors
/// A file cannot be read.
pub fn file_system(kernel: &Kernel, tools: &BTreeSet<String>) -> Result<Vec<u8>, GuestError> {
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.folder(folder);
    }
    // For the loader, which looks at it as well, `self` would be the loader.
    let own = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let content = fs::read(&own).map_err(GuestError::failed("read linerate's own program"))?;
    libraries(&mut archive, &own, &content)?;
    archive.file("/init", 0o755, elf::stripped(content));
    archive.link("/sbin/modprobe", "/init");
    let mut extensions = false;
    for tool in tools.iter().filter(|tool| *tool != "modprobe") {
        let Some(path) = process::find(tool) else {
            continue;
        };
        program(&mut archive, &path)?;
        extensions |= tool.contains("tables");
    }
    if extensions {
        for folder in EXTENSIONS {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                program(&mut archive, &entry.path())?;
            }
        }
    }
    for table in TABLES {
        if let Ok(content) = fs::read(table) {
            archive.file(table, 0o644, content);
        }
    }
    let folder = Path::new("/lib/modules").join(&kernel.version);
    let builtin = folder.join("modules.builtin");
    archive.file(builtin, 0o644, &kernel.built_in);
    let index = modules::index(&kernel.modules);
    archive.file("/lib/modules/index", 0o644, index);
    for (name, module) in &kernel.modules {
        let path = Path::new("/lib/modules").join(format!("{name}.ko"));
        archive.file(path, 0o644, &module.content);
    }
    Ok(archive.finish())
}

/// A program or library of this machine at its own path, with the links that lead to it and the libraries that it needs.
fn program(archive: &mut Archive, path: &Path) -> Result<(), GuestError> {
    let shown = path.display();
    let whole = fs::canonicalize(path).map_err(GuestError::failed(format!("find {shown}")))?;
    if whole != path {
        archive.link(path, &whole);
    }
    let content = fs::read(&whole).map_err(GuestError::failed(format!("read {shown}")))?;
    archive.file(&whole, 0o755, &content);
    libraries(archive, &whole, &content)
}

/// The libraries of a program, as its loader finds them. The loader lists them and does not run the program.
fn libraries(archive: &mut Archive, path: &Path, content: &[u8]) -> Result<(), GuestError> {
    let Some(loader) = elf::loader(content) else {
        return Ok(());
    };
    let shown = path.display().to_string();
    let list = Job::new(loader, &["--list", &shown])
        .run(|path| Command::new(path), None)
        .map_err(|e| GuestError::Refused(format!("the libraries of {shown} are not known: {e}")))?;
    let named = list.lines().filter_map(|line| {
        let words = line.split_whitespace();
        words.map(Path::new).find(|word| word.is_absolute())
    });
    let all: BTreeSet<PathBuf> = named
        .map(Path::to_path_buf)
        .chain([loader.into()])
        .collect();
    for library in all {
        let content = fs::read(&library)
            .map_err(GuestError::failed(format!("read {}", library.display())))?;
        archive.file(&library, 0o755, content);
    }
    Ok(())
}
