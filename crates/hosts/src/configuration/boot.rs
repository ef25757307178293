//! Settings of the next boot: the files that have them, the lines that are asked for, and their values. Other lines may hold secrets.

use super::Configuration;
use crate::systems::text::{lines, sections, shown};
use crate::systems::{BSD, Kernel, LINUX, MOST_ENTRIES};
use std::collections::BTreeMap;

/// The systems, their files, and the names in lines that are asked for. See [`glob`].
const FILES: [(&[Kernel], &str, &str); 6] = [
    (
        BSD,
        "/boot/loader.conf /boot/loader.conf.local /etc/sysctl.conf /etc/sysctl.conf.local",
        "hw*|net*|machdep*|dev*|ddb*|compat*|vm.pmap*|vm.swapencrypt*|kern.hz*|kern.ipc*|kern.random*|kern.sched*|\
         kern.eventtimer*|kern.timecounter*|kern.bufcachepercent*|kern.maxclusters*|*_load",
    ),
    (
        BSD,
        "/etc/rc.conf /etc/rc.conf.local",
        "gateway_enable|ipv6_gateway_enable|harvest_mask|powerd_*|pf_enable|ipfilter_enable|firewall_enable|firewall_type|\
         firewall_script|firewall_logging|cloned_interfaces|cpu_microcode_enable|performance_*|jail_enable|disablelrotso_enable|\
         vlans_*|ifconfig_*",
    ),
    (BSD, "/etc/pf.conf", "set *"),
    (
        LINUX,
        "/etc/sysctl.conf /etc/sysctl.d/*.conf",
        "net*|kernel*|vm*|fs*",
    ),
    (LINUX, "/etc/modprobe.d/*.conf", "options nf_conntrack *"),
    (
        LINUX,
        "/proc/cmdline",
        "mitigations*|nosmt*|isolcpus|nohz_full|rcu_nocbs|intel_idle.*|processor.*|idle|maxcpus|nopti|pti|iommu*|intel_iommu|\
         amd_iommu|intel_pstate",
    ),
];

/// Whether a name is of a form: `*` stands for any text. The name of an output is its program, a dash and the arguments without blanks.
pub(super) fn glob(form: &str, name: &str) -> bool {
    let mut parts = form.split('*');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next_back());
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// Signs of a password or a key in a line, as an expression of grep(1).
const SECRETS: &str = "pass|secret|psk|key|token|communit|credential|ifconfig_wlan";

/// Prints the lines of files that are asked for, and that show no sign of a secret. The kernel's command line has a line for each word.
const PRINT: &str = r#"of() { p=$1; shift
for f; do [ -r "$f" ] && echo "==> $f <==" &&
case $f in /proc/*) tr ' ' '\n' ;; *) cat ;; esac <"$f" | grep -E "$p" | grep -viE 'SECRETS'; done; }
"#;

/// The script that asks for them.
pub(super) fn script(kernel: Kernel) -> String {
    let of = |(_, files, names): &(_, &str, &str)| format!("of '{}' {files}\n", expression(names));
    let all = FILES
        .iter()
        .filter(|(kernels, ..)| kernels.contains(&kernel))
        .map(of);
    std::iter::once(PRINT.replace("SECRETS", SECRETS))
        .chain(all)
        .chain([":".into()])
        .collect()
}

/// Lines with these names, as an expression of grep(1).
fn expression(names: &str) -> String {
    let names = names
        .replace('.', "\\.")
        .replace('*', "[^=]*")
        .replace(' ', "[[:space:]]+");
    format!("^[[:space:]]*-?({names})[[:space:]]*(=|$)")
}

/// Whether a line of a file is one that is asked for.
pub(super) fn is_asked(kernel: Kernel, file: &str, line: &str) -> bool {
    let words: Vec<&str> = line
        .split('=')
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    let name = words.join(" ");
    let asked = |(kernels, files, names): &(&[Kernel], &str, &str)| {
        kernels.contains(&kernel)
            && files.split(' ').any(|known| glob(known, file))
            && names
                .split('|')
                .any(|form| glob(form, name.trim_start_matches('-')))
    };
    !is_secret(line) && FILES.iter().any(asked)
}

/// Whether a line may hold a password or a key.
pub(super) fn is_secret(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    SECRETS.split('|').any(|word| line.contains(word))
}

/// The path on the system of a saved file with such settings: `etc/rc.conf`, `router-rc.conf.txt`.
pub(super) fn path_of(saved: &str) -> Option<String> {
    let saved = saved.strip_suffix(".txt").unwrap_or(saved);
    let files = FILES.iter().flat_map(|(_, files, _)| files.split(' '));
    // A folder without folders has the names alone.
    let named = |path: &&str| {
        let name = path.rsplit('/').next().filter(|_| path.contains(".conf"));
        let before = name.and_then(|name| saved.strip_suffix(name));
        before.is_some_and(|before| before.is_empty() || before.ends_with(['/', '-', '_']))
    };
    let whole = format!("/{saved}");
    let known = files.clone().find(named).map(|path| path.to_string());
    known.or_else(|| {
        files
            .clone()
            .any(|path| glob(path, &whole))
            .then_some(whole)
    })
}

impl Configuration {
    /// Lines `name=value` of files, in their sections; the kernel's command line, and `options MODULE name=value`.
    pub(super) fn boot(&mut self, answer: &str) {
        for (file, text) in sections(answer) {
            let all = lines(text).flat_map(limits);
            let settings: BTreeMap<_, _> = all
                .filter_map(|line| setting(file, &line))
                .take(MOST_ENTRIES)
                .collect();
            if !settings.is_empty() {
                self.boot.entry(shown(file)).or_default().extend(settings);
            }
        }
    }
}

/// The name and the value in a line of a file.
fn setting(file: &str, line: &str) -> Option<(String, String)> {
    let line = line.split(" #").next()?.split("\t#").next()?.trim();
    if line.is_empty() || line.starts_with('#') || is_secret(line) {
        return None;
    }
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (name, value) = match words.as_slice() {
        ["options", _, ..] | ["set", ..] => line.rsplit_once(['=', ' '])?,
        _ => line.split_once('=').unwrap_or((line, "")),
    };
    let name = name.trim().trim_start_matches('-');
    // Slashes stand for dots in sysctl.d, unless there is a dot before.
    let name = if file.contains("sysctl") && !name.split('/').next()?.contains('.') {
        name.replace('/', ".")
    } else {
        name.into()
    };
    Some((
        shown(&name),
        shown(value.trim().trim_matches(['"', '\'', '{', '}'])),
    ))
}

/// A line of a file of settings; limits in braces, `set limit { states 10000, src-nodes 2000 }`, as a line each.
fn limits(line: &str) -> Vec<String> {
    let inner = line
        .trim()
        .strip_prefix("set")
        .and_then(|rest| rest.trim_start().strip_prefix("limit"));
    let inner = inner.and_then(|rest| rest.trim_start().strip_prefix('{')?.split('}').next());
    let Some(inner) = inner else {
        return vec![line.into()];
    };
    let words: Vec<&str> = inner
        .split([' ', '\t', ','])
        .filter(|word| !word.is_empty())
        .collect();
    words
        .chunks_exact(2)
        .map(|pair| format!("set limit {} {}", pair[0], pair[1]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::sysctl::{ELSEWHERE, Lasts};

    #[test]
    fn settings_are_read_from_the_files_where_they_last() {
        for (name, lasts) in ELSEWHERE {
            let (file, name) = match lasts {
                Lasts::Sysctl => ("/etc/sysctl.conf", name),
                Lasts::Rc(variable) | Lasts::RcYes(variable) => ("/etc/rc.conf", variable),
                Lasts::Loader => ("/boot/loader.conf", name),
            };
            assert!(
                is_asked(Kernel::FreeBsd, file, &format!("{name}=1")),
                "{file}: {name}"
            );
        }
    }

    #[test]
    fn saved_files_are_known_by_their_names() {
        for (saved, path) in [
            ("etc/rc.conf", Some("/etc/rc.conf")),
            (
                "router_loader.conf.local.txt",
                Some("/boot/loader.conf.local"),
            ),
            ("etc/modprobe.d/x.conf", Some("/etc/modprobe.d/x.conf")),
            ("proc/cmdline", Some("/proc/cmdline")),
            ("proc/1/cmdline", None),
            ("mysysctl.conf", None),
        ] {
            assert_eq!(path_of(saved).as_deref(), path, "{saved}");
        }
    }
}
