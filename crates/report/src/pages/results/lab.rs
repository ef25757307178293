//! The lab as a drawing: hosts in the order of the frames' way, their links, and the CPUs of each role.

use super::end_hosts::bits;
use crate::format::lines;
use crate::prelude::*;
use linerate_measure::record::PathOf;
use linerate_plan::settings::cpu_list;
use maud::html;

/// Width of a host, of a link, and of a letter; height of a line.
const HOST: usize = 200;
const LINK: usize = 70;
const LETTER: usize = 7;
const LINE: usize = 18;
/// Colours that the style sheet of a page exchanges in the dark.
const INK: &str = "#1B1F24";
const SOFT: &str = "#57606A";
/// Variants that are named.
const NAMED: usize = 3;

/// A host or namespace: its role and what is known of it.
struct Place {
    role: String,
    lines: Vec<String>,
}

fn place(role: &str, lines: Vec<String>) -> Place {
    Place {
        role: role.into(),
        lines,
    }
}

/// The lab of a campaign; `None` where the records do not tell.
pub fn lab(campaign: &Campaign, host: &HostFacts) -> Option<Drawing> {
    let (places, link) = match (campaign.asked.lab, campaign.asked.mode) {
        (LabKind::Imported, _) => return None,
        (LabKind::Hosts, _) | (_, Mode::Hosts) => {
            (of_hosts(&campaign.standing)?, "cable".to_string())
        }
        (LabKind::Simulated, _) => (embedded(campaign), "memory".to_string()),
        (LabKind::Namespaces, Mode::EndHosts) => end_hosts(campaign)?,
        (LabKind::Namespaces, _) => (embedded(campaign), "veth".to_string()),
    };
    let around = match campaign.asked.lab {
        LabKind::Namespaces => {
            format!(
                "network namespaces of one machine: {}, {} CPUs, Linux {}",
                host.cpu_model, host.cpus, host.kernel
            )
        }
        LabKind::Simulated => "simulated in memory: no machine, no link".into(),
        LabKind::Hosts | LabKind::Imported => String::new(),
    };
    let ways = ways(&campaign.slots);
    let hosts: Vec<String> = places
        .iter()
        .map(|place| format!("{} ({})", place.role, place.lines.join(", ")))
        .collect();
    let arrow = match ways {
        [true, true] => "<->",
        [false, true] => "<-",
        _ => "->",
    };
    let says = format!(
        "{}{}{}",
        hosts.join(&format!(" {arrow} ")),
        when(!around.is_empty(), "; "),
        around
    );
    Some(Drawing {
        title: "The lab".into(),
        svg: svg(&places, &link, ways, &around),
        says,
        flames: false,
    })
}

/// Whether frames go forward, and whether they go back.
fn ways(slots: &[Slot]) -> [bool; 2] {
    let any = |way| {
        slots
            .iter()
            .any(|slot| slot.direction.ways().contains(&way))
    };
    [any(Direction::Forward), any(Direction::Reverse)]
}

fn cpus(all: &[u32]) -> String {
    match list(all).as_str() {
        "none" => "no CPU of its own".into(),
        one if one.parse::<u32>().is_ok() => format!("CPU {one}"),
        several => format!("CPUs {several}"),
    }
}

/// `1-3,5`
pub fn list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.is_empty() {
        "none".into()
    } else {
        cpu_list(&sorted)
    }
}

fn embedded(campaign: &Campaign) -> Vec<Place> {
    let asked = &campaign.asked;
    let roles = &campaign.roles;
    let inline = asked.mode == Mode::Inline;
    let of = |own: &[u32]| {
        if inline {
            format!("{}, in turns", cpus(&roles.generator))
        } else {
            cpus(own)
        }
    };
    let mut variants: Vec<String> = campaign.variants();
    let more = variants.len().saturating_sub(NAMED);
    variants.truncate(NAMED);
    if more > 0 {
        variants.push(format!("and {more} more"));
    }
    if asked.lab == LabKind::Simulated {
        variants.push("a model, not this machine".into());
    } else {
        variants.push(of(&roles.dut));
    }
    vec![
        place(
            "generator",
            vec![
                format!("by {}", asked.generator),
                of(&roles.generator),
                load(campaign),
            ],
        ),
        place("DUT", variants),
        place(
            "receiver",
            vec![format!("by {}", asked.receiver), of(&roles.receiver)],
        ),
    ]
}

/// The offered load in short.
fn load(campaign: &Campaign) -> String {
    let each = |of: fn(&Slot) -> &str| {
        let mut all: Vec<&str> = campaign.slots.iter().map(of).collect();
        all.sort_by_key(|text| (text.parse::<u32>().unwrap_or(u32::MAX), *text));
        all.dedup();
        some(all.into_iter().map(String::from), 3, ", ")
    };
    format!("frames: {}", each(|slot| &slot.frame))
}

fn end_hosts(campaign: &Campaign) -> Option<(Vec<Place>, String)> {
    // The tester alone has a path without delay and limit.
    let of = |tester: bool| -> Vec<&PathOf> {
        let slots = campaign.slots.iter();
        let own = slots.filter(|slot| slot.is_calibration() == tester);
        own.filter_map(|slot| slot.path.as_ref()).collect()
    };
    let paths = [of(false), of(true)]
        .into_iter()
        .find(|of| !of.is_empty())?;
    let each = |text: &dyn Fn(&PathOf) -> String| {
        let mut seen = BTreeSet::new();
        let texts = paths.iter().map(|path| text(path));
        let different = texts.filter(|text| seen.insert(text.clone()));
        some(different.collect::<Vec<_>>(), 3, ", ")
    };
    let rate = each(&|path| path.rate.map_or("no limit".into(), |rate| bits(rate, 3)));
    let end = |does: &str| place("end host", vec![does.into(), cpus(&campaign.roles.dut)]);
    let trip = format!("{} round trip", each(&|path| time(path.rtt_ns as f64)));
    let middle = place("path", vec![trip, rate]);
    let places = vec![end("iperf3 sends TCP"), middle, end("iperf3 receives")];
    Some((places, "veth".into()))
}

/// The hosts of a lab file, by their roles: `name (roles)` and what was found on them.
fn of_hosts(standing: &BTreeMap<String, String>) -> Option<Vec<Place>> {
    let host = |(key, found): (&String, &String)| {
        let (name, roles) = key.strip_suffix(')')?.rsplit_once(" (")?;
        let lines = std::iter::once(name.to_string()).chain(found.split(", ").map(String::from));
        Some((roles.to_string(), lines.collect::<Vec<String>>()))
    };
    let hosts: Vec<(String, Vec<String>)> = standing.iter().filter_map(host).collect();
    let of = |role: &str| {
        let mut own = hosts
            .iter()
            .filter(|(roles, _)| roles.split(", ").any(|one| one == role));
        let (_, lines) = own.next()?;
        let mut lines = lines.clone();
        let more = own.count();
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        Some(place(if role == "dut" { "DUT" } else { role }, lines))
    };
    let places: Vec<Place> = ["generator", "dut", "receiver"]
        .into_iter()
        .filter_map(of)
        .collect();
    (places.len() > 1).then_some(places)
}

/// Lines of at most as many letters as a host has room for.
fn wrapped(texts: &[String]) -> Vec<String> {
    let most = (HOST - 16) / LETTER;
    let cut = |word: &str| word.chars().take(most).collect::<String>();
    let cut = |text: &String| text.split_whitespace().map(cut).joined(" ");
    texts
        .iter()
        .flat_map(|text| lines(&cut(text), most))
        .take(12)
        .collect()
}

fn svg(places: &[Place], link: &str, [forward, back]: [bool; 2], around: &str) -> String {
    let texts: Vec<Vec<String>> = places.iter().map(|place| wrapped(&place.lines)).collect();
    let tall = 34 + LINE * texts.iter().map(Vec::len).max().unwrap_or(0);
    let below = if around.is_empty() { 0 } else { 30 };
    let (wide, high) = (20 + places.len() * (HOST + LINK) - LINK, 20 + tall + below);
    let left = |at: usize| 10 + at * (HOST + LINK);
    let middle = 10 + tall / 2;
    let arrow = |from: usize, to: usize, y: usize| {
        let head = if to > from { to - 8 } else { to + 8 };
        html! {
            line x1=(from) y1=(y) x2=(to) y2=(y) fill="none" stroke=(INK) stroke-width="1.5" {}
            polyline points=(format!("{head},{} {to},{y} {head},{}", y - 5, y + 5)) fill="none" stroke=(INK) stroke-width="1.5" {}
        }
    };
    html! {
        svg font-family="sans-serif" font-size="13" fill=(INK) viewBox=(format!("0 0 {wide} {high}")) width=(wide) height=(high) {
            @if !around.is_empty() {
                rect x="1" y="1" width=(wide - 2) height=(high - 2) rx="6" fill="none" stroke="#D0D7DE" {}
                text x="14" y=(high - 12) fill=(SOFT) { (around.chars().take((wide - 28) / LETTER).collect::<String>()) }
            }
            @for (at, (place, lines)) in places.iter().zip(&texts).enumerate() {
                rect x=(left(at)) y="10" width=(HOST) height=(tall) rx="4" fill="none" stroke=(INK) {}
                text x=(left(at) + 10) y="30" font-weight="bold" { (place.role) }
                @for (n, line) in lines.iter().enumerate() {
                    text x=(left(at) + 10) y=(30 + LINE * (n + 1)) { (line) }
                }
                @if at > 0 {
                    @let [from, to] = [left(at) - LINK + 4, left(at) - 4];
                    text x=(left(at) - LINK / 2) y=(middle - 14) text-anchor="middle" fill=(SOFT) { (link) }
                    @if forward { (arrow(from, to, middle - if back { 5 } else { 0 })) }
                    @if back { (arrow(to, from, middle + if forward { 7 } else { 0 })) }
                }
            }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_measure::record::Asked;

    fn campaign(lab: LabKind, directions: &[Direction]) -> Campaign {
        let slot = |direction: &Direction| Slot {
            direction: *direction,
            plan_variant: "pf".into(),
            no_ceiling: true,
            ..Slot::default()
        };
        let asked = Asked {
            lab,
            generator: "xdp".into(),
            receiver: "xdp".into(),
            ..Asked::default()
        };
        Campaign {
            asked,
            slots: directions.iter().map(slot).collect(),
            ..Campaign::default()
        }
    }

    #[test]
    fn hosts_stand_in_the_order_of_the_frames_way() {
        let mut of = campaign(LabKind::Hosts, &[Direction::Both]);
        for (host, found) in [
            (
                "b <dut> (dut)",
                "FreeBSD 14.1, 8 CPUs, in ix0 00:00:5e:00:53:01, out ix1 00:00:5e:00:53:02",
            ),
            ("a (generator, receiver)", "Linux 6.12, 4 CPUs, by xdp"),
            ("statement", "as its instructions say"),
        ] {
            of.standing.insert(host.into(), found.into());
        }
        let drawing = lab(&of, &HostFacts::default()).unwrap();
        assert_eq!(
            drawing.says,
            "generator (a, Linux 6.12, 4 CPUs, by xdp) <-> DUT (b <dut>, FreeBSD 14.1, 8 CPUs, in ix0 00:00:5e:00:53:01, out ix1 00:00:5e:00:53:02) <-> receiver (a, Linux 6.12, 4 CPUs, by xdp)"
        );
        assert_eq!(
            drawing.svg.matches("<polyline").count(),
            4,
            "two links, both ways"
        );
        assert!(
            drawing.svg.contains("b &lt;dut&gt;") && !drawing.svg.contains("<dut>"),
            "{}",
            drawing.svg
        );
        of.standing.clear();
        assert_eq!(lab(&of, &HostFacts::default()), None);
    }

    #[test]
    fn namespaces_say_their_cpus_and_that_they_are_one_machine() {
        let mut of = campaign(LabKind::Namespaces, &[Direction::Reverse]);
        of.roles.generator = vec![3, 2];
        let says = lab(
            &of,
            &HostFacts {
                cpus: 4,
                ..HostFacts::default()
            },
        )
        .unwrap()
        .says;
        assert!(
            says.contains("generator (by xdp, CPUs 2-3, in turns") && says.contains(") <- DUT (pf"),
            "{says}"
        );
        assert!(says.contains("network namespaces of one machine"), "{says}");
        assert_eq!(
            lab(&campaign(LabKind::Imported, &[]), &HostFacts::default()),
            None
        );
    }

    #[test]
    fn the_path_of_end_hosts_is_that_of_the_variants() {
        let mut of = campaign(LabKind::Namespaces, &[Direction::Forward; 4]);
        of.asked.mode = Mode::EndHosts;
        let paths = [(0, None), (10, Some(1e9)), (10, Some(1e9)), (2, Some(1e9))];
        for (slot, (ms, rate)) in of.slots.iter_mut().zip(paths) {
            slot.path = Some(PathOf {
                rtt_ns: ms * 1_000_000,
                rate,
                payload: 1448,
                by: "linerate".into(),
            });
        }
        of.slots[0].no_ceiling = false;
        assert!(of.slots[0].is_calibration());
        let says = |of: &Campaign| lab(of, &HostFacts::default()).unwrap().says;
        let several = says(&of);
        assert!(
            several.contains("path (10.0 ms, 2.00 ms round trip, 1000 Mbit/s)"),
            "{several}"
        );
        of.slots.truncate(1);
        let tester = says(&of);
        assert!(tester.contains("no limit"), "{tester}");
    }
}
