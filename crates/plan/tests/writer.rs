//! Plans that are written read back as the same campaign.

use linerate_measure::experiment::{Interest, System};
use linerate_plan::campaign::Campaign;
use linerate_plan::{EXAMPLE, Plan, write};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// All plans that come with linerate, with their names.
fn shipped() -> Vec<(String, String)> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => below(&path, found),
                false if path.extension().is_some_and(|ending| ending == "toml") => found.push(path),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans"), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap()))
        .collect()
}

/// The part of a campaign that a written plan must keep.
fn essence(mut campaign: Campaign) -> Campaign {
    let experiment = &mut campaign.experiment;
    experiment.quick = false;
    // A form or system can lack all cells of a factor or an expectation: a plan has no use for these.
    let used =
        |factor: usize| campaign.cells.iter().any(|cell| cell.levels.iter().any(|(f, _)| *f == factor));
    let kept: Vec<usize> = (0..experiment.factors.len()).filter(|factor| used(*factor)).collect();
    let factor = |old: usize| kept.iter().position(|kept| *kept == old).unwrap();
    let judged: Vec<bool> = experiment.expectations.iter().map(|e| !e.pairs.is_empty()).collect();
    let expectation = |old: usize| judged[..old].iter().filter(|judged| **judged).count();
    for comparison in &mut experiment.comparisons {
        comparison.why = match comparison.why {
            Interest::Levels(old) => Interest::Levels(factor(old)),
            Interest::Expectation(old) => Interest::Expectation(expectation(old)),
            why => why,
        };
    }
    campaign.cells.iter_mut().flat_map(|cell| &mut cell.levels).for_each(|(old, _)| *old = factor(*old));
    let mut at = 0;
    experiment.factors.retain(|_| (kept.contains(&at), at += 1).0);
    experiment.expectations.retain(|expected| !expected.pairs.is_empty());
    for expected in &mut experiment.expectations {
        // Lines and words do not count: the same cells can be named in several ways.
        (expected.line, expected.words) = (0, String::new());
    }
    campaign
}

fn read_back(campaign: &Campaign) -> Result<Campaign, String> {
    let text = write(campaign);
    let system = campaign.experiment.system;
    let plan = Plan::read(text.as_bytes()).map_err(|faults| format!("{faults:#?}\n{text}"))?;
    plan.campaign(system, false).cloned().ok_or_else(|| format!("it is not for {system}\n{text}"))
}

/// The forms of a plan for each of its systems.
fn campaigns(plan: &Plan) -> impl Iterator<Item = &Campaign> {
    let forms = plan.systems.iter().flat_map(|system| [(system, false), (system, true)]);
    forms.filter_map(|(system, quick)| plan.campaign(*system, quick))
}

#[test]
fn shipped_plans_are_written_and_read_back() {
    for (name, text) in shipped().into_iter().chain([("example".into(), EXAMPLE.into())]) {
        let plan = Plan::read(text.as_bytes()).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
        for campaign in campaigns(&plan) {
            let read = read_back(campaign).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(essence(read), essence(campaign.clone()), "{name}\n{}", write(campaign));
        }
    }
}

#[test]
fn written_plans_look_like_those_of_people() {
    let plan = Plan::read(EXAMPLE.as_bytes()).unwrap();
    assert_eq!(write(plan.campaign(System::Linux, false).unwrap()), include_str!("written.toml"));
}

/// Lines of a variant, of which each key is there once.
const SETTINGS: [&[&str]; 15] = [
    &["dut = \"vlan\"", "dut = \"known-delay=5us\"", "dut = \"bridge\""],
    &["cpus = 2", "cpus = \"all\""],
    &[
        "sysctls = { \"net.ipv4.ip_forward\" = true, \"net.core.netdev_budget\" = \"6 0\", \"net.{in}.x\" = 1 }",
    ],
    &["interface.mtu = \"9000 B\"", "interface.gro = false\ninterface.in.HOSTS.rx-wait = \"5 us\""],
    &["interface.out.HOSTS.private-flags = { a = true, \"b c\" = false }", "interface.in.rps = \"0,2-3\""],
    &[
        "routes = { count = 10, explicit = [{ to = \"203.0.113.0/24\", via = \"198.19.0.2\", end = \"in\" }] }",
    ],
    &["neighbours.explicit = [{ address = \"198.19.0.9\", mac = \"02:00:00:00:00:09\" }]"],
    &[
        "rules = { tool = \"nftables\", filter = \"stateful\", states = 1000, hash = \"default\" }",
        "rules = { tool = \"iptables\", filter = \"stateless\", before = 10, table = 100 }",
        "rules = { tool = \"nftables\", filter = \"nat\", states = 1 }",
    ],
    &["states = \"one-way\""],
    &["modules = [\"veth\"]", "modules = [\"veth\", \"bridge\"]"],
    &["files = [{ path = \"FOLDERa.conf\", text = \"\"\"x = 'y'\n\ttwo \\\\ {in}\n\"\"\" }]"],
    &[
        "commands = [{ run = \"echo \\\"{in}\\\" # a\", undo = \"true\", within = \"5 min\" }]",
        "commands = [{ run = \"echo $x\", undo = \"true\" }, { run = \"echo a b c d e f g h i j k l m n o p q r s t u v w x y z\", undo = \"true\" }]",
    ],
    &[
        "event = { what = \"process-killed\", process = \"frr\" }",
        "event = { what = \"process-killed\", process = \"bird\", run = \"bird -c x\" }",
        "event = { what = \"command\", run = \"ip route flush table 7\", undo = \"true\", for = \"20 ms\" }",
    ],
    &["requires = { tools = [\"a\", \"b\"], kernel = \"5.17\", memory = \"1 GiB\", cpus = 1 }"],
    &["apart = true"],
];

const FACTORS: [&str; 10] = [
    "sets = [\"traffic.networks\", \"traffic.flows\"]\nlevels = [1, 256]\ncombine = \"alone\"",
    "sets = \"traffic.size\"\nlevels = [\"64 B\", \"mix:64x7+594x4\", \"imix\"]",
    "sets = \"traffic.family\"\nlevels = [\"IPv6\", \"IPv4\"]",
    "sets = \"traffic.rate\"\nlevels = [\"max\", \"7 %\", \"1.5 kpps\"]\ncombine = \"alone\"",
    "sets = [\"traffic.flows\", \"traffic.stamp-every\"]\nlevels = [1_000, 10]\ncombine = \"alone\"",
    "sets = \"cpus\"\nlevels = [1, \"all\"]\nabout = \"CPUs\"",
    "sets = \"interface.gro\"\nlevels = [true, false]\ncombine = \"alone\"",
    "sets = \"sysctls.net.core.dev_weight\"\nlevels = [64, 16]",
    "sets = \"interface.in.mtu\"\nlevels = [\"9000 B\", \"3000 B\"]\nvariants = [\"v0\"]",
    "sets = \"traffic.checksum\"\nlevels = [false, true]",
];

const LABS: [&str; 5] = [
    "",
    "[lab]\nmode = \"threaded\"\nlink-speed = \"10 Gbit/s\"",
    "[lab]\ngenerator-cpus = \"0,2-3\"\nbatch = 7\nport = \"af-packet\"\nlink-speed = \"100 Mbit/s\"",
    "[lab]\nfile = \"lab.toml\"\nlink-speed = \"2.5 Gbit/s\"",
    "[lab]\nlink-speed = \"1 Gbit/s\"",
];

const TRAFFIC: [&str; 7] = [
    "",
    "[traffic]\nformat = \"rfc2544\"\nnetworks = 256\nflows = 512\nports = \"random:7\"\nbroadcast-every = 100",
    "[traffic]\nrate = \"10 kpps\"\nburst = 64\nipv6-share = \"12.5 %\"\nsource-macs = \"random\"",
    "[traffic]\nfamily = \"IPv6\"\nextension-headers = \"chain\"",
    "[traffic]\ntransport = \"ICMP\"\nflows = 1\norder = \"zipf:1.1\"",
    "[traffic]\nchecksum = false\nrate = \"4882.8125 pps\"",
    "[traffic]\nsize = \"genome:aaafg\"\nfamily = \"IPv6\"\ntransport = \"TCP\"",
];

const COMPARE: [&str; 6] = [
    "",
    "[compare]\nuntil = \"0.35 %\"",
    "[compare]\nwith = \"v1\"\nwhat = [\"variants\"]",
    "[compare]\nwhat = [\"levels\", \"ceilings\"]\nuntil = \"7 %\"",
    "[compare]\nwhat = [\"expectations\"]",
    "[compare]\nwhat = [\"ceilings\"]",
];

const EXPECT: [&str; 6] = [
    "of = \"v1\"\nis = \"slower\"\nthan = \"v0\"\nby = \"7 %\"",
    "of = \"v0\"\nis = \"same\"\nthan = \"tester-baseline\"\nwithin = \"15 %\"",
    "of = { f0 = LEVEL }\nis = \"faster\"\nthan = \"tester-baseline\"",
    "of = \"tester-baseline\"\nis = \"at-least\"\nrate = \"100 kpps\"",
    "of = {}\nis = \"not-different\"\nthan = \"v0\"",
    "of = { variant = \"v1\", f0 = LEVEL }\nis = \"slower\"\nthan = \"v1\"",
];

fn variant() -> impl Strategy<Value = String> {
    let line = |lines: &'static [&'static str]| prop_oneof![3 => Just(""), 1 => prop::sample::select(lines)];
    let lines: Vec<_> = SETTINGS.iter().map(|lines| line(lines)).collect();
    (lines, any::<bool>()).prop_map(|(lines, child)| {
        let from = if child { "from = \"PARENT\"\n" } else { "" };
        format!(
            "{from}{}\n",
            lines.iter().filter(|line| !line.is_empty()).copied().collect::<Vec<_>>().join("\n")
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_plan_is_written_and_read_back(
        lab in prop::sample::select(&LABS[..]),
        traffic in prop::sample::select(&TRAFFIC[..]),
        variants in prop::collection::vec(variant(), 1..4),
        factors in prop::sample::subsequence(&FACTORS[..], 0..3),
        compare in prop::sample::select(&COMPARE[..]),
        expect in prop::sample::subsequence(&EXPECT[..], 0..3),
        seed in any::<Option<u32>>(),
    ) {
        let mut text = format!("title = \"t 'q' \\\"\"\nquestion = \"q\"\n{lab}\n{traffic}\n{compare}\n");
        // The embedded lab refuses settings that its links do not have.
        let hosts = lab.contains("file");
        let (folder, hosts) = if hosts { ("/etc/", "") } else { ("", "#") };
        for (at, variant) in variants.iter().enumerate() {
            let parent = if at == 0 { "nft-stateless".into() } else { format!("v{}", at - 1) };
            let variant = variant.replace("PARENT", &parent).replace("FOLDER", folder);
            let lines = variant.lines().map(|line| match line.contains("HOSTS.") {
                true => format!("{hosts}{}\n", line.replace("HOSTS.", "")),
                false => format!("{line}\n"),
            });
            text += &format!("[variants.v{at}]\n{}", lines.collect::<String>());
        }
        for (at, factor) in factors.iter().enumerate() {
            text += &format!("[factors.f{at}]\n{factor}\n");
        }
        let levels = factors.first().and_then(|factor| factor.split("levels = [").nth(1));
        let level = levels.and_then(|levels| levels.split([',', ']']).next()).unwrap_or_default();
        let possible = |expect: &&&str| {
            (variants.len() > 1 || !expect.contains("v1")) && (!factors.is_empty() || !expect.contains("LEVEL"))
        };
        for expect in expect.iter().filter(possible) {
            text += &format!("[[expect]]\n{}\nbecause = \"so\"\n", expect.replace("LEVEL", level));
        }
        text += "[trials]\nduration = \"10 ms\"\nblocks = 6\npause = \"1 ms\"\n";
        text += &seed.map_or(String::new(), |seed| format!("seed = {seed}\n"));
        let plan = Plan::read(text.as_bytes());
        for campaign in plan.iter().flat_map(campaigns) {
            let read = read_back(campaign).map_err(TestCaseError::fail)?;
            prop_assert_eq!(essence(read), essence(campaign.clone()), "{}\n{}", text, write(campaign));
        }
    }
}
