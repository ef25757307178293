//! Things that frames meet on their way through a DUT beyond plain routing, each with the time of the functions that belong to it.

mod functions;

use crate::case::{Case, PROGRAM};
use linerate_hosts::configuration::Item;
use linerate_measure::record::{OnPath, PathEntry};
use std::net::IpAddr;

/// Bytes of a program's name that the kernel keeps.
const MOST_NAME: usize = 15;

/// The list of a slot; `None` where its DUT was not asked.
pub(crate) fn on_path(case: &Case<'_>) -> Option<OnPath> {
    let configuration = case.configuration().ok()?;
    let (items, ways) = configuration.on_path(&addresses(case));
    let profiled = case.profile().is_ok();
    let mut entries: Vec<PathEntry> = items.into_iter().map(|item| entry(case, item)).collect();
    // Entries without a share keep the order of the way.
    entries.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
    Some(OnPath {
        entries,
        ways,
        not_known: configuration.not_known_of_path(),
        profiled,
    })
}

/// A destination and a source of the slot's frames.
fn addresses(case: &Case<'_>) -> Vec<IpAddr> {
    let flows = case.slot.traffic.as_ref().map(|traffic| &traffic.flows);
    let first = flows.map(|flows| flows.flow(0));
    first.map_or(Vec::new(), |flow| vec![flow.dst, flow.src])
}

fn entry(case: &Case<'_>, item: Item) -> PathEntry {
    let functions = functions(&item);
    let names: Vec<&str> = functions.iter().map(String::as_str).collect();
    let spent = match names.is_empty() {
        true => None,
        false => case.spent_apart(&names, functions::apart(&item)).ok(),
    };
    // A share within its error is none.
    let seen = spent.as_ref().filter(|spent| spent.is_clear(0.0));
    PathEntry {
        kind: item.kind,
        share: seen.map(|spent| spent.share),
        ns: seen.and_then(|spent| spent.ns),
        error: spent.as_ref().map(|spent| spent.error),
        name: item.name,
        place: item.place,
        functions,
    }
}

/// The functions that belong to an entry: those of its kind and word, and its program.
fn functions(item: &Item) -> Vec<String> {
    let program = item.program.as_ref().map(|program| {
        let name: String = program.name.chars().take(MOST_NAME).collect();
        format!("{PROGRAM}{}_{name}", program.tag)
    });
    let mut all = functions::of(item.kind, &item.word);
    all.extend(program);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_hosts::configuration::Program;
    use linerate_measure::record::Met;

    #[test]
    fn a_program_has_its_own_function() {
        let program = Program {
            id: 7,
            name: "look_at_every_frame".into(),
            tag: "1f".into(),
        };
        let item = |word: &str| Item {
            kind: Met::Program,
            word: word.into(),
            program: Some(program.clone()),
            ..Item::default()
        };
        assert_eq!(functions(&item("xdp")), ["bpf_prog_1f_look_at_every_f"]);
        let generic = functions(&item("generic"));
        assert!(generic.contains(&"do_xdp_generic*".into()), "{generic:?}");
    }

    #[test]
    fn words_give_functions_of_their_own() {
        let of = |kind, word: &str| functions::of(kind, word);
        let queued = of(Met::QueueingDiscipline, "htb");
        assert!(queued.contains(&"htb_enqueue*".into()), "{queued:?}");
        let filtered = of(Met::TrafficFilter, "u32 mirred");
        assert_eq!(filtered, ["u32_classify*", "tcf_mirred_*"]);
        let no_own = of(Met::Setting, "net.core.dev_weight");
        assert!(no_own.is_empty(), "{no_own:?}");
    }
}
