//! Which system a host runs: by uname(1) and the files that appliances have.

use super::text::{bounded, lines, pairs, sections, shown};
use linerate_measure::experiment;
use linerate_plan::lab::OperatingSystem;

/// The kernel, which decides the form of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// FreeBSD, and systems based on it.
    FreeBsd,
    OpenBsd,
    NetBsd,
    /// Linux, and systems based on it.
    Linux,
}

/// Every kernel that is known here, and some.
pub(crate) const ALL: &[Kernel] = &[
    Kernel::Linux,
    Kernel::FreeBsd,
    Kernel::OpenBsd,
    Kernel::NetBsd,
];
pub(crate) const LINUX: &[Kernel] = &[Kernel::Linux];
pub(crate) const FREEBSD: &[Kernel] = &[Kernel::FreeBsd];
pub(crate) const OPENBSD: &[Kernel] = &[Kernel::OpenBsd, Kernel::NetBsd];
pub(crate) const BSD: &[Kernel] = &[Kernel::FreeBsd, Kernel::OpenBsd, Kernel::NetBsd];

impl Kernel {
    /// Name in records.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::FreeBsd => "freebsd",
            Kernel::OpenBsd => "openbsd",
            Kernel::NetBsd => "netbsd",
            Kernel::Linux => "linux",
        }
    }

    /// The kernel of that name.
    pub fn named(name: &str) -> Option<Kernel> {
        ALL.iter().copied().find(|kernel| kernel.name() == name)
    }

    /// The kernel that uname(1) names with the first word of a line; a login may print other lines, too.
    pub fn said(text: &str) -> Option<Kernel> {
        let of =
            |line: &str| Kernel::named(&line.split_ascii_whitespace().next()?.to_ascii_lowercase());
        lines(text).filter_map(of).last()
    }

    /// The kernel under a system.
    pub fn of(system: OperatingSystem) -> Kernel {
        match system {
            OperatingSystem::FreeBsd
            | OperatingSystem::PfSense
            | OperatingSystem::OpnSense
            | OperatingSystem::Bsdrp
            | OperatingSystem::Nanobsd => Kernel::FreeBsd,
            OperatingSystem::OpenBsd => Kernel::OpenBsd,
            OperatingSystem::NetBsd => Kernel::NetBsd,
            OperatingSystem::Linux | OperatingSystem::Vyos => Kernel::Linux,
        }
    }

    /// The system that has its name.
    pub(super) fn plain(self) -> OperatingSystem {
        match self {
            Kernel::FreeBsd => OperatingSystem::FreeBsd,
            Kernel::OpenBsd => OperatingSystem::OpenBsd,
            Kernel::NetBsd => OperatingSystem::NetBsd,
            Kernel::Linux => OperatingSystem::Linux,
        }
    }
}

/// The system of plans with this kernel; NetBSD is most like OpenBSD.
impl From<Kernel> for experiment::System {
    fn from(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Linux => experiment::System::Linux,
            Kernel::FreeBsd => experiment::System::FreeBsd,
            Kernel::OpenBsd | Kernel::NetBsd => experiment::System::OpenBsd,
        }
    }
}

/// The system of a host, by its own word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    pub system: OperatingSystem,
    /// The kernel's release: `15.0-PRERELEASE`, `6.12.8-amd64`.
    pub kernel: String,
    /// The distribution's or appliance's name and version, if it has one.
    pub product: Option<String>,
}

impl System {
    /// A host about which no more is known.
    pub(super) fn unnamed(system: OperatingSystem) -> System {
        System {
            system,
            kernel: String::new(),
            product: None,
        }
    }
}

/// The first lines of these files distinguish appliances from the systems that they are based on.
pub const FILES: [&str; 6] = [
    "/etc/os-release",
    "/etc/version",
    "/etc/platform",
    "/etc/product_name",
    "/etc/nanobsd.conf",
    OPNSENSE,
];
/// The file that an OPNsense has, and no other system.
pub(crate) const OPNSENSE: &str = "/usr/local/opnsense/version/core";

/// Recognises a system by `uname -a`, the output of `head -n 40` of [`FILES`], and that of `mount`; missing outputs are empty.
pub fn detect(uname: &[u8], files: &[u8], mount: &[u8]) -> Option<System> {
    let uname = bounded(uname);
    // The output of a login may stand before it.
    let words: Vec<&str> = lines(&uname).find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        Kernel::said(line).filter(|_| words.len() >= 3)?;
        Some(words)
    })?;
    let (system, product) = appliance(Kernel::said(words[0])?, &uname, files, mount);
    Some(System {
        system,
        kernel: shown(words[2]),
        product,
    })
}

/// The system with this kernel, and its product, by what there is of [`detect`]'s outputs.
pub(crate) fn appliance(
    kernel: Kernel,
    uname: &str,
    files: &[u8],
    mount: &[u8],
) -> (OperatingSystem, Option<String>) {
    let files = bounded(files);
    let mount = bounded(mount);
    let said = Said {
        uname,
        files: sections(&files),
        mount: &mount,
    };
    let (system, product) = match kernel {
        Kernel::OpenBsd | Kernel::NetBsd => (kernel.plain(), None),
        Kernel::Linux => said.linux(),
        Kernel::FreeBsd => said.freebsd(),
    };
    let product = product.map(|p| shown(&p)).filter(|p| !p.is_empty());
    (system, product)
}

struct Said<'a> {
    uname: &'a str,
    files: Vec<(&'a str, &'a str)>,
    mount: &'a str,
}

impl Said<'_> {
    fn file(&self, name: &str) -> Option<&str> {
        self.files
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, text)| *text)
    }

    fn first_line(&self, name: &str) -> Option<&str> {
        lines(self.file(name)?)
            .map(str::trim)
            .find(|l| !l.is_empty())
    }

    fn os_release(&self, key: &str) -> Option<&str> {
        value(self.file("/etc/os-release")?, '=', key)
    }

    fn linux(&self) -> (OperatingSystem, Option<String>) {
        let is_vyos = self
            .os_release("ID")
            .is_some_and(|id| id.eq_ignore_ascii_case("vyos"));
        let product = self.os_release("PRETTY_NAME").map(String::from);
        (
            if is_vyos {
                OperatingSystem::Vyos
            } else {
                OperatingSystem::Linux
            },
            product,
        )
    }

    fn freebsd(&self) -> (OperatingSystem, Option<String>) {
        let version = self.first_line("/etc/version");
        let named = |name: &str| {
            Some(
                format!("{name} {}", version.unwrap_or(""))
                    .trim()
                    .to_string(),
            )
        };
        let is_pfsense = ["/etc/platform", "/etc/product_name"].iter().any(|f| {
            self.first_line(f)
                .is_some_and(|l| l.to_ascii_lowercase().contains("pfsense"))
        });
        if is_pfsense {
            return (OperatingSystem::PfSense, named("pfSense"));
        }
        if let Some(core) = self.file(OPNSENSE) {
            return (OperatingSystem::OpnSense, Some(opnsense(core)));
        }
        // A kernel may be built by BSDRP's scripts, under a path that has its name, for another system: the mounted file systems
        // are surer, and so is the kernel's own name, the last but one word.
        let ident = self
            .uname
            .split_ascii_whitespace()
            .rev()
            .nth(1)
            .unwrap_or("");
        let built = |name: &str| {
            self.mount.contains(&format!("/dev/ufs/{name}")) || ident.starts_with(name)
        };
        let path = self.uname.contains("/BSDRP/FreeBSD/") && version.is_some();
        if built("BSDRP") || path {
            return (OperatingSystem::Bsdrp, named("BSDRP"));
        }
        if self.file("/etc/nanobsd.conf").is_some() {
            return (OperatingSystem::Nanobsd, version.map(String::from));
        }
        (
            OperatingSystem::FreeBsd,
            self.os_release("PRETTY_NAME").map(String::from),
        )
    }
}

/// OPNsense's version file is JSON with one pair a line.
fn opnsense(file: &str) -> String {
    let version = value(file, ':', "product_version").or(value(file, ':', "CORE_VERSION"));
    format!("OPNsense {}", version.unwrap_or_default())
        .trim()
        .into()
}

/// The value of the first line with this key, without quotation marks.
fn value<'a>(file: &'a str, separator: char, key: &str) -> Option<&'a str> {
    let clean = |text: &'a str| text.trim_matches([',', '"', '\'', ' ']);
    pairs(file, separator)
        .find(|(name, _)| clean(name) == key)
        .map(|(_, value)| clean(value))
}
