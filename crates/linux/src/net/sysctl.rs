//! The `net/` sysctls of a namespace, written by a thread inside it: /proc/sys/net follows the task that looks.

use std::fs;
use std::path::PathBuf;

use super::{Error, Netns};
use crate::files::is_plain;

/// Sets one key, such as `net/ipv4/ip_forward`.
pub fn set(ns: &Netns, key: &str, value: &str) -> Result<(), Error> {
    apply(ns, &[(key, value)])
}

/// Reads one key; the final newline is left out.
pub fn get(ns: &Netns, key: &str) -> Result<String, Error> {
    let path = key_path(key)?;
    ns.run(|| {
        let text = fs::read_to_string(&path);
        let text = text.map_err(|e| Error::kernel(format!("read {key} in namespace {}", ns.label()), e))?;
        Ok(text.trim_end().to_owned())
    })
}

/// Sets many keys in order, on one thread; stops at the first that fails.
pub fn apply(ns: &Netns, settings: &[(&str, &str)]) -> Result<(), Error> {
    let paths = settings.iter().map(|(key, _)| key_path(key)).collect::<Result<Vec<_>, _>>()?;
    ns.run(|| {
        for (path, (key, value)) in paths.iter().zip(settings) {
            let failed = |e| Error::kernel(format!("set {key} to {value} in namespace {}", ns.label()), e);
            // No O_CREAT: a key that does not exist must say so instead of "permission denied".
            let mut file = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
            std::io::Write::write_all(&mut file, value.as_bytes()).map_err(failed)?;
        }
        Ok(())
    })
}

/// Whether a key is the namespace's own, so that it can be set there. Others are the host's, mere counters, or unknown to this
/// kernel. Nothing is written.
pub fn is_settable(ns: &Netns, key: &str) -> Result<bool, Error> {
    let Ok(path) = key_path(key) else { return Ok(false) };
    ns.run(|| Ok(fs::OpenOptions::new().write(true).open(path).is_ok()))
}

/// A key as its path below /proc/sys, from either spelling of sysctl(8): `net.ipv4.ip_forward`, in which a slash means a dot, and
/// `net/ipv4/ip_forward`. The first separator decides.
pub fn path_of(name: &str) -> Result<String, Error> {
    let dotted = name.find(['.', '/']).is_none_or(|at| name.as_bytes()[at] == b'.');
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let path: String = if dotted { name.chars().map(swap).collect() } else { name.to_owned() };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-@:+".contains(c);
    if !path.contains('/') || !is_plain(&path) || !path.chars().all(plain) {
        let reason = "it must be a plain name such as net.ipv4.ip_forward";
        return Err(Error::Invalid { what: "the sysctl key", value: name.into(), reason });
    }
    Ok(path)
}

/// Refuses a value that is more than one line.
pub fn check_value(key: &str, value: &str) -> Result<(), Error> {
    if value.trim().is_empty() || value.len() > 4096 || value.chars().any(|c| c.is_control() && c != '\t') {
        let value = format!("{key} = {value:?}");
        return Err(Error::Invalid {
            what: "the sysctl value",
            value,
            reason: "it must be one line, not empty",
        });
    }
    Ok(())
}

/// Only keys under `net/` belong to a namespace; any other would change the whole machine.
fn key_path(key: &str) -> Result<PathBuf, Error> {
    let wrong = |reason| Error::Invalid { what: "the sysctl key", value: key.into(), reason };
    if !key.starts_with("net/") {
        return Err(wrong("only keys under net/ belong to a network namespace"));
    }
    if !is_plain(key) || key.contains('\0') {
        return Err(wrong("it must be a plain path such as net/ipv4/ip_forward"));
    }
    Ok(PathBuf::from("/proc/sys").join(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_leave_net_are_refused() {
        for key in [
            "",
            "net",
            "net/",
            "kernel/panic",
            "net/../kernel/panic",
            "/net/x",
            "net//x",
            "net/./x",
            "net/a\0",
        ] {
            assert!(key_path(key).is_err(), "{key:?}");
        }
        assert!(key_path("net/ipv4/conf/g0.100/rp_filter").is_ok());
    }

    #[test]
    fn both_spellings_of_sysctl_are_read() {
        for (name, path) in [
            ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
            ("net/ipv4/ip_forward", "net/ipv4/ip_forward"),
            ("net.ipv4.conf.g0/100.rp_filter", "net/ipv4/conf/g0.100/rp_filter"),
            ("net/ipv4/conf/g0.100/rp_filter", "net/ipv4/conf/g0.100/rp_filter"),
            ("kernel.panic", "kernel/panic"),
        ] {
            assert_eq!(path_of(name).unwrap(), path);
        }
    }

    #[test]
    fn hostile_keys_and_values_are_refused() {
        for name in [
            "",
            "net",
            ".",
            "/",
            "..",
            "net..ipv4",
            "net.ipv4.",
            ".net.ipv4",
            "/proc/sys/net/ipv4/ip_forward",
            "net/../kernel/panic",
            "net.ipv4./.x",
            "net.//.kernel.panic",
            "net.ipv4.ip_forward\n",
            "net.ipv4.ip forward",
            "net.ipv4.ip_forward\0",
            "net.ipv4.ip_forward=1",
        ] {
            assert!(path_of(name).is_err(), "{name:?}");
        }
        for value in ["", " ", "1\n2", "1\0", "\u{7f}"] {
            assert!(check_value("net/x", value).is_err(), "{value:?}");
        }
        check_value("net/ipv4/tcp_rmem", "4096\t131072\t6291456").unwrap();
    }
}
