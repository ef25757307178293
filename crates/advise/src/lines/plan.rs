//! Advice as a plan that tests it.

use super::*;
use linerate_plan::sysctl::FORWARDING;

/// Settings that the host of an embedded lab can also try, though no fact of a host decides about them: name, sentence, and key of an interface.
const TRIED: [(&str, &str, &str, bool); 2] = [
    (
        "gro-off",
        "Receive offload off: no advice, but some routers forward faster without it",
        "gro",
        false,
    ),
    (
        "threaded-napi",
        "A kernel thread forwards: no advice, but some routers forward faster with it",
        "threaded-napi",
        true,
    ),
];

/// A plan for `linerate tune`: the DUT with the present values, and a variant for each item that a plan can make and that may make
/// a router faster. Every lab's DUT forwards. Items of other systems than Linux need the hosts of a lab file.
pub fn plan(chosen: &Chosen) -> String {
    // The gain of end hosts depends on their path.
    let all = chosen.named || chosen.path.is_some();
    let faster = |item: &&Item| all || item.may_be_faster();
    let items = chosen.items.iter().chain(&chosen.open).copied();
    let items: Vec<&Item> = items.filter(faster).collect();
    let system = items
        .first()
        .and_then(|item| item.id.split('-').next())
        .unwrap_or("linux");
    let mut out = String::from(
        "title = \"Recommended settings\"\nquestion = \"Which of them make this DUT faster?\"\nsource = \"linerate advise\"\n",
    );
    // An end host is measured on a path, which other systems than this machine's have not.
    let path = chosen.path.filter(|_| system == "linux");
    if system != "linux" {
        let _ = writeln!(
            out,
            "\n[lab]\nfile = \"lab.toml\"\nsystems = [{}]",
            text(system)
        );
    } else if path.is_some() {
        out += "\n[lab]\nmode = \"end-hosts\"\n";
    }
    let changes: Vec<_> = items
        .iter()
        .filter_map(|item| Some((*item, patch(item, path.is_some())?)))
        .collect();
    // Frames of IPv4 do not meet a setting of IPv6.
    let (of_ipv6, others): (Vec<_>, Vec<_>) = changes
        .into_iter()
        .partition(|(_, patch)| is_of_ipv6(patch));
    if others.is_empty() && !of_ipv6.is_empty() {
        out += "\n[traffic]\nfamily = \"IPv6\"\n";
    }
    let (changes, apart) = match others.is_empty() {
        true => (of_ipv6, Vec::new()),
        false => (others, of_ipv6),
    };
    for (item, _) in apart {
        let id = &item.id;
        let _ = writeln!(out, "\n# {id} is about IPv6: --item {id} prints its plan.");
    }
    let embedded = system == "linux" && path.is_none();
    // Inline, the load would not wait for the CPUs that RPS hands frames to.
    let threaded = embedded && changes.iter().any(|(_, patch)| steers(patch));
    if threaded {
        out += "\n[lab]\nmode = \"threaded\"\n";
    }
    let mut now = present(&changes);
    // The other settings of Linux are the whole machine's: the lab finds them as they are.
    now.retain(|name, _| system != "linux" || name.starts_with("net.ipv"));
    out += "\n[variants.as-it-is]\nabout = \"the present values\"\n";
    if let Some(Path { rate, rtt_ns }) = path {
        let (ms, megabits) = (rtt_ns / 1e6, rate / 1e6);
        let _ = writeln!(
            out,
            "path = {{ rtt = \"{ms} ms\", rate = \"{megabits} Mbit/s\" }}"
        );
    }
    if !now.is_empty() {
        let _ = writeln!(out, "sysctls = {}", table(&now));
    }
    for (item, patch) in changes {
        out += &variant(item, &patch);
    }
    if embedded && !chosen.named {
        out += &tried(threaded);
    }
    // In a lab of hosts a trial is long, and loader tunables need boots.
    out += match system {
        "linux" if path.is_some() => "\n[trials]\nduration = \"1 s\"\nbudget = \"20 min\"\n",
        "linux" => "\n[trials]\nduration = \"100 ms\"\nbudget = \"4 min\"\n",
        _ => {
            "\n[trials]\nduration = \"30 s\"\nblocks = 10\npause = \"5 s\"\nreboot = \"when-needed\"\n"
        }
    };
    out
}

/// The keys of a variant that an item changes. The DUT of a plan forwards by itself.
fn patch(item: &Item, end_hosts: bool) -> Option<Map<String, Value>> {
    let mut patch = item.patch.as_ref()?.as_object()?.clone();
    if end_hosts {
        return of_end_hosts(&patch);
    }
    if let Some(sysctls) = patch.get_mut("sysctls").and_then(Value::as_object_mut) {
        sysctls.retain(|name, _| !FORWARDING.contains(&name.as_str()));
        if sysctls.is_empty() {
            patch.remove("sysctls");
        }
    }
    (!patch.is_empty()).then_some(patch)
}

/// The variant of an item.
fn variant(item: &Item, patch: &Map<String, Value>) -> String {
    let mut lines = format!(
        "\n[variants.{}]\nfrom = \"as-it-is\"\nabout = {}\n",
        item.id,
        text(&item.title)
    );
    for (key, values) in patch
        .iter()
        .filter_map(|(key, values)| Some((key, values.as_object()?)))
    {
        let _ = writeln!(lines, "{key} = {}", table(values));
    }
    lines
}

/// Variants that are worth a trial on any machine.
fn tried(threaded: bool) -> String {
    let fitting = TRIED.iter().filter(|(.., on)| threaded || !on);
    fitting
        .map(|(name, about, key, on)| {
            format!(
                "\n[variants.{name}]\nfrom = \"as-it-is\"\nabout = {}\ninterface = {{ \"{key}\" = {on} }}\n",
                text(about)
            )
        })
        .collect()
}

/// Whether a patch hands received frames to other CPUs.
fn steers(patch: &Map<String, Value>) -> bool {
    patch
        .get("interface")
        .is_some_and(|interface| interface.get("rps").is_some())
}

/// An inline table of TOML.
fn table(values: &Map<String, Value>) -> String {
    let pairs: Vec<String> = values
        .iter()
        .map(|(name, value)| format!("{} = {value}", text(name)))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// Whether a patch changes nothing but settings of IPv6.
fn is_of_ipv6(patch: &Map<String, Value>) -> bool {
    let of = |name: &String| {
        ["net.inet6.", "net.ipv6."]
            .iter()
            .any(|begin| name.starts_with(begin))
    };
    let sysctls = patch.get("sysctls").and_then(Value::as_object);
    patch.len() == 1 && sysctls.is_some_and(|all| all.keys().all(of))
}

/// The present values of the sysctls that changes set.
fn present(changes: &[(&Item, Map<String, Value>)]) -> Map<String, Value> {
    let number = |value: &str| {
        value
            .parse::<i64>()
            .map_or_else(|_| value.into(), Value::from)
    };
    let now = changes.iter().flat_map(|(item, patch)| {
        let set = |name: &String| {
            patch
                .get("sysctls")
                .is_some_and(|sysctls| sysctls.get(name).is_some())
        };
        item.settings
            .iter()
            .filter(move |setting| set(&setting.name))
            .filter_map(|setting| Some((setting.name.clone(), number(setting.now.as_ref()?))))
    });
    now.collect()
}

/// The sysctls of TCP and IP in a patch, which each namespace has: all that two end hosts of a plan can differ in from this machine.
fn of_end_hosts(patch: &Map<String, Value>) -> Option<Map<String, Value>> {
    let sysctls = patch
        .get("sysctls")?
        .as_object()?
        .iter()
        .filter(|(name, _)| name.starts_with("net.ipv4."));
    let own: Map<String, Value> = sysctls
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    (!own.is_empty()).then(|| Map::from_iter([("sysctls".to_string(), own.into())]))
}
