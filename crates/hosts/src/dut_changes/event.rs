//! Events on a host while a load runs, as steps that are journalled and undone.

use super::scripts::NFT_BACK;
use super::{Family, Form, Input, List, Program, Step, Steps, Target, Undo};
use linerate_measure::experiment::System;
use linerate_plan::rules::RuleSet;
use linerate_plan::settings::{Dut, End, Event, EventKind, Settings};
use linerate_plan::sysctl::forwarding;
use linerate_wire::Family as IpVersion;
use std::borrow::Cow;

/// The steps that begin an event; those that can be undone are undone after its time. None for a boot and for power, which need no
/// step.
///
/// # Errors
/// This system has no way for it.
pub fn event(
    event: &Event,
    settings: &Settings,
    rules: Option<&RuleSet>,
    families: &[IpVersion],
    target: &Target,
) -> Result<Vec<Step>, String> {
    if settings.dut == Dut::Nested {
        return Err(
            "linerate interrupts the host itself only, not a router in a network stack of its own"
                .into(),
        );
    }
    let mut list = List {
        target: Cow::Borrowed(target),
        steps: Steps::default(),
        unsupported: Vec::new(),
    };
    let linux = matches!(target.system, System::Linux | System::Vyos);
    let shell = |line: &String| Program::new(["sh", "-c", &target.fill(line)]);
    match event.what {
        EventKind::ForwardingOff => {
            for family in families {
                let of = usize::from(*family == IpVersion::V6);
                list.sysctl(forwarding(target.system)[of], "0");
            }
        }
        EventKind::LinkDown if linux => link_down(&mut list, event.end.unwrap_or(End::In)),
        EventKind::LinkDown => {
            let why = "static routes may go with the link: use a command with its own undoing";
            list.refuse("link-down", why);
        }
        EventKind::RulesReloaded => {
            (Family::of(target.system).firewall)(&mut list, settings.rule_file.as_ref(), rules);
            list.steps.steps = list.steps.steps.into_iter().filter_map(again).collect();
        }
        EventKind::ProcessKilled => {
            let name = event.process.as_deref().unwrap_or_default();
            let find = Program::new(["pgrep", "-x", name]);
            let kill = Program::new(["pkill", "-KILL", "-x", name]);
            // One that does not run is not started either.
            let found = Some(find.asking(Form::Whole));
            let started = event
                .run
                .as_ref()
                .map_or(Undo::Stays, |line| Undo::Run(shell(line)));
            list.add(format!("process {name}"), found, kill, started);
        }
        EventKind::Command => {
            if let (Some(run), Some(undo)) = (&event.run, &event.undo) {
                list.with_undo(format!("command `{run}`"), shell(run), shell(undo));
            }
        }
        // Refused by the checks of plans, or no steps.
        EventKind::FirewallRestarted | EventKind::Reboot | EventKind::PowerOff => {}
    }
    // A router under load may not answer in time: the losses show what became of it.
    list.steps
        .steps
        .iter_mut()
        .for_each(|step| step.check = None);
    if list.unsupported.is_empty() {
        Ok(list.steps.steps)
    } else {
        Err(list.unsupported.join("; "))
    }
}

/// Prints what the kernel forgets with a link, in the words of ip(8)'s batches.
pub(super) const LINK_READ: &str = r#"for f in 4 6; do
	ip -"$f" -o addr show dev "$1" scope global | awk -v dev="$1" '{
		line = "addr replace " $4
		for (i = 5; i <= NF; i++) {
			if ($i ~ /^(peer|brd|metric)$/) line = line " " $i " " $(i + 1)
			if ($i ~ /^(nodad|noprefixroute|home|mngtmpaddr)$/) line = line " " $i
			if ($3 == "inet" && sub(/\\$/, "", $i) && $i != dev && $i != "") line = line " label " $i
		}
		print line " dev " dev
	}'
	ip -"$f" neigh show dev "$1" nud permanent | while read -r address _ mac _; do
		echo "neigh replace $address lladdr $mac dev $1 nud permanent"
	done
	ip -"$f" route show dev "$1" | grep -v 'proto kernel' | while read -r route; do
		echo "route replace ${route%% linkdown*} dev $1"
	done
done; exit 0"#;
/// Takes the link up again, with everything that [`LINK_READ`] printed.
const LINK_BACK: &str = r#"{ echo "link set dev $1 up"; cat; } | ip -batch -"#;

fn link_down(list: &mut List<'_>, end: End) {
    let name = list.target.end(end).name.clone();
    let read = Program::script(LINK_READ, [&name]).asking(Form::Whole);
    let down = Program::new(["ip", "link", "set", "dev", &name, "down"]);
    let up = Program::script(LINK_BACK, [&name]).reading(Input::Was);
    list.steps
        .steps
        .push(Step::change(format!("{name} down"), read, down, up));
}

/// Rules of ipfw are added to those that there are.
const IPFW_ANEW: &str = r#"ipfw -q -f flush && exec "$@""#;

/// The loading of a step once more; none if it loads no rules. Sets and modules stay as they are.
fn again(step: Step) -> Option<Step> {
    let Program { argv, input } = step.apply;
    if input == Input::Nothing || argv[0] == "ipset" {
        return None;
    }
    let apply = match argv[0].as_str() {
        "nft" => Program::script(NFT_BACK, [""; 0]),
        "ipfw" => Program::script(IPFW_ANEW, argv),
        _ => Program::new(argv),
    };
    let what = format!("{}, once more", step.what);
    Some(Step {
        what,
        read: None,
        apply: apply.reading(input),
        check: None,
        undo: Undo::Stays,
        ..step
    })
}
