//! The `net/` sysctls of a namespace, written by a thread inside it: /proc/sys/net follows the task that looks.

use std::fs;
use std::path::PathBuf;

use super::{Error, Netns};

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

/// Only keys under `net/` belong to a namespace; any other would change the whole machine.
fn key_path(key: &str) -> Result<PathBuf, Error> {
    let wrong = |reason| Error::Invalid { what: "the sysctl key", value: key.into(), reason };
    if !key.starts_with("net/") {
        return Err(wrong("only keys under net/ belong to a network namespace"));
    }
    if key.split('/').any(|part| part.is_empty() || part == "." || part == "..") || key.contains('\0') {
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
}
