//! The reverse-path filter looks up the source of each frame.

use super::{change, cost_or_setting};
use crate::{Case, Examined};
use linerate_measure::record::Finding;
use serde_json::json;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let setting = case.configured(&["sysctl"], |found| {
        let names = found.cards.first().map(|card| card.name.as_str()).into_iter().chain(["all"]);
        let on = names.map(|name| format!("net.ipv4.conf.{name}.rp_filter")).find(|name| found.number(name) > Some(0));
        on.map(|name| format!("{name} = {}", found.sysctls[&name].trim()))
    });
    // With routing rules, the kernel looks the source up without the filter as well: `policy-routing`.
    let is_off = matches!(setting, Ok(None));
    let functions = ["rpfilter_mt", "nft_fib*", "ip6t_rpfilter*", "__fib_validate_source"];
    let spent = case.spent(&functions[..if is_off { 3 } else { 4 }]);
    let Some(found) = cost_or_setting(spent, 0.005, setting)? else { return Ok(None) };
    let off = "sysctl net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.IF.rp_filter=0";
    Ok(Some(Finding {
        statement: "The reverse-path filter looks up a second route for each frame.".into(),
        mechanism: "The filter looks up the route to a frame's source beside that to its destination. It protects against forged sources: turn it off only where another filter does that.".into(),
        changes: vec![change("Linux", off, off.replace("=0", "=1"))],
        patch: Some(json!({ "sysctls": { "net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.{in}.rp_filter": 0 } })),
        ..found
    }))
}
