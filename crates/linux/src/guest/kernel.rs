//! Kernels: found by a path, a version or as the one that runs, and recognised by their first bytes.

use super::modules::{self, Module};
use super::{GuestError, package};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Bytes of an image at most.
const LONGEST: u64 = 256 << 20;

/// A kernel that can be booted.
#[derive(Debug)]
pub struct Kernel {
    /// As the user named it.
    pub named: String,
    /// The kernel's release: `6.1.0-47-amd64`.
    pub version: String,
    /// The kernel's first line, with its number and its day.
    pub banner: String,
    pub image: Vec<u8>,
    /// The modules that a lab may need.
    pub(super) modules: BTreeMap<String, Module>,
    /// The kernel's list of modules that are part of it; empty where there is none.
    pub(super) built_in: String,
    /// Where its modules were looked for, in words.
    from: String,
    /// Size and time of its file: by these a changed one is noticed.
    pub state: String,
}

impl Kernel {
    /// The kernel of this name: `running`, a version in /boot, the path of an image, or that of a Debian package. `also`: modules
    /// that the plan names.
    ///
    /// # Errors
    /// There is none, or the file is no kernel.
    pub fn find(named: &str, also: &BTreeSet<String>) -> Result<Kernel, GuestError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(refused(
                "kernels are booted on x86-64 machines alone, and this is none".into(),
            ));
        }
        let path = place(named)?;
        let shown = path.display();
        let open = |e| GuestError::failed(format!("read the kernel {shown}"))(e);
        let mut file = fs::File::open(&path).map_err(open)?;
        let facts = file.metadata().map_err(open)?;
        if !facts.is_file() {
            return Err(refused(format!(
                "{shown} is no kernel: name a bzImage, such as /boot/vmlinuz-VERSION or arch/x86/boot/bzImage, or a Debian package linux-image-..."
            )));
        }
        let mut begin = Vec::new();
        Read::by_ref(&mut file)
            .take(package::MAGIC.len() as u64)
            .read_to_end(&mut begin)
            .map_err(open)?;
        let changed = facts
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let seconds = changed.map_or(0, |at| at.as_secs());
        let state = format!("{} bytes, changed at {seconds} s", facts.len());
        if begin == package::MAGIC {
            return of_package(named, &path, state, also);
        }
        let mut image = begin;
        file.take(LONGEST).read_to_end(&mut image).map_err(open)?;
        of_image(named, &path, image, state, also)
    }

    /// Names of modules, of which the guest cannot do without any, that are neither in the kernel nor among its modules.
    ///
    /// # Errors
    /// The first of them, with the place where it was looked for.
    pub fn check_channel(&self) -> Result<(), GuestError> {
        let is_there = |name: &str| {
            self.modules.contains_key(name)
                || self.built_in.is_empty() && self.modules.is_empty()
                || self
                    .built_in
                    .lines()
                    .any(|line| modules::name(line).as_deref() == Some(name))
        };
        match modules::CHANNEL.into_iter().find(|name| !is_there(name)) {
            None => Ok(()),
            Some(name) => Err(refused(format!(
                "the kernel {} has no module {name}, which the guest speaks to linerate through ({})",
                self.version, self.from
            ))),
        }
    }
}

fn refused(why: String) -> GuestError {
    GuestError::Refused(why)
}

/// The file of a kernel.
fn place(named: &str) -> Result<PathBuf, GuestError> {
    let in_boot = |version: &str| Path::new("/boot").join(format!("vmlinuz-{version}"));
    if named == "running" {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(
            GuestError::failed("ask for the release of the running kernel"),
        )?;
        let path = in_boot(release.trim());
        return match path.exists() {
            true => Ok(path),
            false => Err(refused(format!(
                "the running kernel has no image {}, from which a guest could boot it: name an image of it",
                path.display()
            ))),
        };
    }
    let path = Path::new(named);
    if path.exists() {
        return Ok(path.into());
    }
    let of_version = in_boot(named);
    if !named.contains('/') && of_version.exists() {
        return Ok(of_version);
    }
    let also = match named.contains('/') {
        true => String::new(),
        false => format!(", nor {}", of_version.display()),
    };
    Err(refused(format!(
        "there is no kernel {named}: there is no such file{also}"
    )))
}

/// The banner of a bzImage; `None` for any other file. Offsets: Documentation/arch/x86/boot.rst.
fn banner(image: &[u8]) -> Option<String> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let at = 0x200
        + usize::from(u16::from_le_bytes(
            image.get(0x20e..0x210)?.try_into().ok()?,
        ));
    let text = image.get(at..)?.split(|byte| *byte == 0).next()?;
    let text = std::str::from_utf8(text.get(..text.len().min(300))?).ok()?;
    (!text.contains(char::is_control) && !text.is_empty()).then(|| text.to_owned())
}

/// The banner, and the release that it begins with.
fn recognised(image: &[u8], shown: &str) -> Result<(String, String), GuestError> {
    let what = || {
        let is = match image {
            [0x7f, b'E', b'L', b'F', ..] => {
                ": an ELF file, as vmlinux is: name arch/x86/boot/bzImage"
            }
            [0x1f, 0x8b, ..] | [0xfd, b'7', b'z', ..] => ": a compressed file",
            _ => " that x86-64 machines boot: its header lacks the bytes HdrS",
        };
        refused(format!("{shown} is no kernel{is}"))
    };
    let banner = banner(image).ok_or_else(what)?;
    let version = banner.split(' ').next().unwrap_or_default().to_owned();
    Ok((banner, version))
}

/// A kernel whose modules are in a folder: that of this machine, or beside the image, or the tree that it was built in.
fn of_image(
    named: &str,
    path: &Path,
    image: Vec<u8>,
    state: String,
    also: &BTreeSet<String>,
) -> Result<Kernel, GuestError> {
    let (banner, version) = recognised(&image, &path.display().to_string())?;
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let above = |levels: usize| whole.ancestors().nth(levels).map(Path::to_path_buf);
    let root = above(2).unwrap_or_default();
    let mut places = vec![
        root.join("lib/modules").join(&version),
        root.join("usr/lib/modules").join(&version),
        Path::new("/lib/modules").join(&version),
    ];
    if whole.ends_with("arch/x86/boot/bzImage") {
        places.extend(above(4));
    }
    places.dedup();
    let looked: Vec<String> = places.iter().map(|at| at.display().to_string()).collect();
    let at = places
        .into_iter()
        .find(|at| at.join("modules.order").exists());
    let (all, built_in, from) = match &at {
        Some(at) => {
            let paths = modules::below(at);
            let read = |path: &str| fs::read(at.join(path));
            let built_in = fs::read_to_string(at.join("modules.builtin")).unwrap_or_default();
            let from = format!("its modules are in {}", at.display());
            (modules::closure(&paths, also, &read)?, built_in, from)
        }
        None => {
            let from = format!("no modules were found in {}", looked.join(", "));
            (BTreeMap::new(), String::new(), from)
        }
    };
    Ok(Kernel {
        named: named.into(),
        version,
        banner,
        image,
        modules: all,
        built_in,
        from,
        state,
    })
}

/// A kernel in a Debian package, with its modules.
fn of_package(
    named: &str,
    path: &Path,
    state: String,
    also: &BTreeSet<String>,
) -> Result<Kernel, GuestError> {
    let shown = path.display().to_string();
    // Modules that others depend on may be anywhere but in the drivers.
    let is_wanted = |path: &str| {
        let path = path.strip_prefix("usr/").unwrap_or(path);
        if path.starts_with("boot/vmlinuz-") {
            return true;
        }
        let Some((_, below)) = path
            .strip_prefix("lib/modules/")
            .and_then(|p| p.split_once('/'))
        else {
            return false;
        };
        let part = below.strip_prefix("kernel/").unwrap_or_default();
        let needed = ["net/", "lib/", "crypto/", "arch/", "drivers/virtio/"];
        below == "modules.builtin"
            || modules::is_wanted(below)
            || modules::name(below).is_some_and(|name| also.contains(&name))
            || needed.iter().any(|folder| part.starts_with(folder))
    };
    let mut files = package::files(path, &is_wanted)?;
    let image = files
        .keys()
        .find(|path| path.starts_with("boot/vmlinuz-"))
        .cloned();
    let Some(image) = image.and_then(|image| files.remove(&image)) else {
        return Err(refused(format!(
            "{shown} has no kernel (boot/vmlinuz-...): packages with one are named linux-image-VERSION"
        )));
    };
    let (banner, version) = recognised(&image, &shown)?;
    let prefix = format!("lib/modules/{version}/");
    let below = |path: &String| {
        let path = path.strip_prefix("usr/").unwrap_or(path);
        path.strip_prefix(&prefix).map(String::from)
    };
    let mut tree: BTreeMap<String, Vec<u8>> = files
        .into_iter()
        .filter_map(|(path, content)| Some((below(&path)?, content)))
        .collect();
    let built_in = tree.remove("modules.builtin").unwrap_or_default();
    let paths: Vec<String> = tree.keys().cloned().collect();
    let read = |path: &str| {
        let content = tree.get(path).cloned();
        content.ok_or_else(|| std::io::ErrorKind::NotFound.into())
    };
    Ok(Kernel {
        named: named.into(),
        modules: modules::closure(&paths, also, &read)?,
        built_in: String::from_utf8_lossy(&built_in).into_owned(),
        from: format!("its modules are in {shown}"),
        version,
        banner,
        image,
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(version: &str) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        image
    }

    #[test]
    fn an_image_says_its_release() {
        let (banner, version) = recognised(&image("6.1.0-9-amd64 (x) #1 SMP"), "k").unwrap();
        assert_eq!(
            (banner.as_str(), version.as_str()),
            ("6.1.0-9-amd64 (x) #1 SMP", "6.1.0-9-amd64")
        );
    }

    #[test]
    fn other_files_are_no_kernels() {
        let cut = &image("6.1")[..0x20f];
        for (other, why) in [
            (&b"\x7fELF\x02\x01"[..], "bzImage"),
            (&b"\x1f\x8b\x08"[..], "compressed"),
            (&b"hello"[..], "HdrS"),
            (cut, "HdrS"),
            (&image("")[..], "HdrS"),
        ] {
            let fault = recognised(other, "k").unwrap_err().to_string();
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn a_kernel_that_is_not_there_says_where_it_was_looked_for() {
        let fault = Kernel::find("0.1-none", &BTreeSet::new())
            .unwrap_err()
            .to_string();
        assert!(fault.contains("/boot/vmlinuz-0.1-none"), "{fault}");
        let fault = Kernel::find("/nonexistent/x", &BTreeSet::new())
            .unwrap_err()
            .to_string();
        assert!(fault.ends_with("no such file"), "{fault}");
    }
}
