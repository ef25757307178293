//! Connections beside frames, and beside kernels with nginx and wrk, on this machine: the figures that a first version must reach.
//!
//! Every round measures all of them once, in turns that change direction; what counts is the median of the ratios within rounds.
//!
//! `sudo -E cargo bench -p linerate --bench connections -- [ROUNDS]`; needs root, nft and a quiet machine, and for the peers nginx, wrk, ip
//! and taskset (Debian: nginx-light, wrk, iproute2, util-linux).

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");

/// A campaign: the variants and what is sent.
const PLAN: &str = r#"
title = "Connections and frames"
question = "How do they compare?"
LAB
traffic = { TRAFFIC }

[variants.plain]
[variants.stateful]
rules = { tool = "nftables", filter = "stateful" }
[variants.masquerade]
rules = { tool = "nftables", filter = "nat" }

[trials]
duration = "250 ms"
blocks = 3
"#;

/// Ratio of two figures, each with a factor (frames of a connection), and its bar.
const BARS: [(&str, f64, &str, f64, &str, f64); 9] = [
    (
        "tester alone, frames/s of request / linerate's UDP tester",
        6.0,
        "request: tester",
        1.0,
        "frames: tester",
        1.8,
    ),
    (
        "UDP request and answer, frames/s / the same",
        2.0,
        "udp: tester",
        1.0,
        "frames: tester",
        1.35,
    ),
    (
        "plain, frames/s / linerate's forwarding",
        6.0,
        "request: plain",
        1.0,
        "frames: plain",
        0.82,
    ),
    (
        "stateful, frames/s / linerate's nft-stateful",
        6.0,
        "request: stateful",
        1.0,
        "frames: stateful",
        0.74,
    ),
    (
        "alone / nginx + wrk, one core",
        1.0,
        "request: tester",
        1.0,
        "nginx: alone",
        130.0,
    ),
    (
        "plain / nginx + wrk, one core",
        1.0,
        "request: plain",
        1.0,
        "nginx: plain",
        0.0,
    ),
    (
        "stateful / nginx + wrk, one core",
        1.0,
        "request: stateful",
        1.0,
        "nginx: stateful",
        9.5,
    ),
    (
        "masquerade / nginx + wrk, one core",
        1.0,
        "request: masquerade",
        1.0,
        "nginx: masquerade",
        8.0,
    ),
    (
        "two cores / one, stateful",
        1.0,
        "two cores: stateful",
        1.0,
        "request: stateful",
        1.8,
    ),
];

type Figures = BTreeMap<String, f64>;

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(7);
    let folder = std::env::temp_dir().join(format!("linerate-connections-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for plans and records");
    let has_peers = ["nginx", "wrk", "ip", "taskset"]
        .iter()
        .all(|tool| is_there(tool));
    let steps: [&dyn Fn() -> Figures; 5] = [
        &|| campaign(&folder, "frames", "flows = 2000", ""),
        &|| campaign(&folder, "request", "connections = \"request\"", ""),
        &|| campaign(&folder, "udp", "connections = \"udp\"", ""),
        &|| {
            campaign(
                &folder,
                "two cores",
                "connections = \"request\"",
                "lab.generator-cpus = \"0-1\"",
            )
        },
        &|| {
            if has_peers {
                nginx(&folder)
            } else {
                Figures::new()
            }
        },
    ];
    let mut all: Vec<Figures> = Vec::new();
    for round in 0..rounds {
        let mut found = Figures::new();
        let order: Vec<usize> = if round % 2 == 0 {
            (0..5).collect()
        } else {
            (0..5).rev().collect()
        };
        order
            .into_iter()
            .for_each(|step| found.extend(steps[step]()));
        eprintln!("round {}: {found:.0?}", round + 1);
        all.push(found);
    }
    fs::remove_dir_all(&folder).ok();
    for (name, times, of, over, than, bar) in BARS {
        let ratio = |found: &Figures| Some(times * found.get(of)? / (over * found.get(than)?));
        let mut ratios: Vec<f64> = all.iter().filter_map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        match ratios[..] {
            [] => println!("{name}: not measured"),
            _ => println!(
                "{name}: {:.2} [{:.2}-{:.2}], {} rounds; bar {bar}",
                ratios[ratios.len() / 2],
                ratios[0],
                ratios[ratios.len() - 1],
                ratios.len()
            ),
        }
    }
}

fn is_there(tool: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(tool).exists())
}

/// Rates a second of each variant.
fn campaign(folder: &Path, name: &str, traffic: &str, lab: &str) -> Figures {
    let (file, records) = (folder.join("plan.toml"), folder.join("records"));
    fs::write(&file, PLAN.replace("TRAFFIC", traffic).replace("LAB", lab))
        .expect("the plan is written");
    let _ = fs::remove_dir_all(&records);
    let ran = Command::new(LINERATE)
        .arg("run")
        .arg(&file)
        .arg("--out")
        .arg(&records)
        .output();
    let ran = ran.expect("linerate runs");
    let read = |name: &str| fs::read_to_string(records.join(name)).unwrap_or_default();
    let [campaign, summary] =
        ["campaign.json", "summary.json"].map(|name| serde_json::from_str::<Value>(&read(name)));
    let (Ok(campaign), Ok(summary)) = (campaign, summary) else {
        panic!("{name}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    let rows = summary["rows"].as_array().cloned().unwrap_or_default();
    let rate = |row: &Value| {
        let variant = campaign["slots"][row["slot"].as_u64()? as usize]["variant"]
            .as_str()?
            .to_string();
        let variant = if variant == "tester-baseline" {
            "tester".into()
        } else {
            variant
        };
        Some((
            format!("{name}: {variant}"),
            row["received"]["median"]
                .as_f64()
                .filter(|rate| *rate > 0.0)?,
        ))
    };
    rows.iter().filter_map(rate).collect()
}

/// A process that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Network namespaces that end with this value.
struct Namespaces([String; 3]);

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.0
            .iter()
            .for_each(|name| drop(Command::new("ip").args(["netns", "delete", name]).output()));
    }
}

/// Requests a second of wrk, each on a connection of its own, to nginx on the same CPU: without a router, and through one.
fn nginx(folder: &Path) -> Figures {
    let rules = |chain: &str| format!("table inet fw {{\n{chain}\n}}\n");
    let stateful = "chain f { type filter hook forward priority 0; policy drop; ct state established,related accept; ct state new accept; }";
    let masquerade =
        "chain p { type nat hook postrouting priority 100; oifname \"d1\" masquerade; }";
    let cases = [
        ("alone", None),
        ("plain", Some(String::new())),
        ("stateful", Some(rules(stateful))),
        ("masquerade", Some(rules(masquerade))),
    ];
    let rate = |(name, rules): (&str, Option<String>)| {
        Some((format!("nginx: {name}"), wrk(folder, rules)?))
    };
    cases.into_iter().filter_map(rate).collect()
}

/// `rules`: those of the router in between; `None`: no router.
fn wrk(folder: &Path, rules: Option<String>) -> Option<f64> {
    let names = ["c", "d", "s"].map(|part| format!("linerate-bench-{part}-{}", std::process::id()));
    let [c, d, s] = &names;
    let sh = |script: &str| {
        let script = script.replace("$c", c).replace("$d", d).replace("$s", s);
        let ran = Command::new("sh")
            .args(["-e", "-c", &script])
            .output()
            .expect("sh runs");
        assert!(
            ran.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    };
    let _ended = Namespaces(names.clone());
    sh("for n in $c $d $s; do ip netns add $n; ip -n $n link set lo up; done");
    match &rules {
        None => sh("ip link add c0 netns $c type veth peer name s0 netns $s
            ip -n $c addr add 198.18.0.1/15 dev c0; ip -n $s addr add 198.19.0.2/15 dev s0
            ip -n $c link set c0 up; ip -n $s link set s0 up"),
        Some(_) => sh("ip link add c0 netns $c type veth peer name d0 netns $d; ip link add s0 netns $s type veth peer name d1 netns $d
            ip -n $c addr add 198.18.0.1/16 dev c0; ip -n $d addr add 198.18.0.254/16 dev d0
            ip -n $s addr add 198.19.0.2/16 dev s0; ip -n $d addr add 198.19.0.254/16 dev d1
            ip -n $c link set c0 up; ip -n $s link set s0 up; ip -n $d link set d0 up; ip -n $d link set d1 up
            ip -n $c route add default via 198.18.0.254; ip -n $s route add default via 198.19.0.254
            ip netns exec $d sysctl -qw net.ipv4.ip_forward=1"),
    }
    sh("ip netns exec $c sysctl -qw net.ipv4.ip_local_port_range='1024 65535'");
    if let Some(rules) = rules.filter(|rules| !rules.is_empty()) {
        let file = folder.join("rules.nft");
        fs::write(&file, rules).expect("the rules are written");
        sh(&format!("ip netns exec $d nft -f {}", file.display()));
    }
    let config = folder.join("nginx.conf");
    fs::write(
        &config,
        NGINX.replace("FOLDER", &folder.display().to_string()),
    )
    .expect("the configuration is written");
    let exec = |namespace: &str, words: &[&str]| {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", namespace, "taskset", "-c", "1"])
            .args(words);
        command
    };
    let server = exec(
        s,
        &["nginx", "-c", config.to_str()?, "-p", folder.to_str()?],
    );
    let _server = Running(quiet(server).spawn().expect("nginx runs"));
    let url = "http://198.19.0.2/";
    // nginx is up once it answers.
    for _ in 0..100 {
        let tried = quiet(exec(
            c,
            &["wrk", "-t1", "-c1", "-d1s", "-H", "Connection: close", url],
        ))
        .status();
        if tried.is_ok_and(|status| status.success()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = exec(
        c,
        &["wrk", "-t1", "-c64", "-d2s", "-H", "Connection: close", url],
    )
    .output()
    .expect("wrk runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    said.lines()
        .find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok())
}

fn quiet(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

const NGINX: &str = "daemon off; master_process off; pid FOLDER/nginx.pid; error_log FOLDER/nginx.log;
events { worker_connections 4096; }
http { access_log off; keepalive_timeout 0; client_body_temp_path FOLDER/b; proxy_temp_path FOLDER/p; fastcgi_temp_path FOLDER/f;
  uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s; server { listen 80 backlog=4096; location / { return 200 'linerate'; } } }
";
