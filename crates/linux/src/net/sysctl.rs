//! The `net/` sysctls of a namespace, written by a thread inside it: /proc/sys/net follows the task that looks.

use std::fs;
use std::path::PathBuf;

use super::Netns;
use crate::error::{Doing, Error};
use crate::files::{is_plain, set_file};
use linerate_plan::sysctl::{dotted, swapped};

/// Sets one key, such as `net/ipv4/ip_forward`.
pub fn set(ns: &Netns, key: &str, value: &str) -> Result<(), Error> {
    apply(ns, &[(key, value)])
}

/// Reads one key; the final newline is left out.
pub fn get(ns: &Netns, key: &str) -> Result<String, Error> {
    let path = key_path(key)?;
    ns.run(|| {
        let text =
            fs::read_to_string(&path).doing(format_args!("read {key} in namespace {}", ns.label()));
        Ok(text?.trim_end().to_owned())
    })
}

/// Sets many keys in order, on one thread; stops at the first that fails.
pub fn apply(ns: &Netns, settings: &[(&str, &str)]) -> Result<(), Error> {
    let paths = settings
        .iter()
        .map(|(key, _)| key_path(key))
        .collect::<Result<Vec<_>, _>>()?;
    ns.run(|| {
        let mut all = paths.iter().zip(settings);
        all.try_for_each(|(path, (key, value))| {
            set_file(path, value).doing(format_args!(
                "set {key} to {value} in namespace {}",
                ns.label()
            ))
        })
    })
}

/// Whether a key is the namespace's own, so that it can be set there. Others are the host's, mere counters, or unknown to this
/// kernel. Nothing is written.
pub fn is_settable(ns: &Netns, key: &str) -> Result<bool, Error> {
    let Ok(path) = key_path(key) else {
        return Ok(false);
    };
    ns.run(|| Ok(fs::OpenOptions::new().write(true).open(path).is_ok()))
}

/// A key as its path below /proc/sys, from either spelling of sysctl(8): `net.ipv4.ip_forward`, in which a slash means a dot, and
/// `net/ipv4/ip_forward`. The first separator decides.
pub fn path_of(name: &str) -> Result<String, Error> {
    let path = swapped(&dotted(name));
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-@:+".contains(c);
    if !path.contains('/') || !is_plain(&path) || !path.chars().all(plain) {
        let reason = "it must be a plain name such as net.ipv4.ip_forward";
        return Err(Error::unusable("the sysctl key", name, reason));
    }
    Ok(path)
}

/// Refuses a value that is more than one line.
pub fn check_value(key: &str, value: &str) -> Result<(), Error> {
    if value.trim().is_empty()
        || value.len() > 4096
        || value.chars().any(|c| c.is_control() && c != '\t')
    {
        let value = format_args!("{key} = {value:?}");
        return Err(Error::unusable(
            "the sysctl value",
            value,
            "it must be one line, not empty",
        ));
    }
    Ok(())
}

/// Only keys under `net/` belong to a namespace; any other would change the whole machine.
fn key_path(key: &str) -> Result<PathBuf, Error> {
    if !key.starts_with("net/") || !is_plain(key) || key.contains('\0') {
        let reason = "keys of a network namespace are plain paths such as net/ipv4/ip_forward";
        return Err(Error::unusable("the sysctl key", key, reason));
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
            (
                "net.ipv4.conf.g0/100.rp_filter",
                "net/ipv4/conf/g0.100/rp_filter",
            ),
            (
                "net/ipv4/conf/g0.100/rp_filter",
                "net/ipv4/conf/g0.100/rp_filter",
            ),
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
