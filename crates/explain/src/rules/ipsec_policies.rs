//! Each frame is compared with the policies of IPsec.

use super::{change, cost_or_setting, in_lab};
use crate::{Case, Examined};
use linerate_measure::record::Finding;

pub(super) fn examine(case: &Case<'_>) -> Examined {
    let unknown = Err("the IPsec policies of the DUT are not asked for".into());
    let functions = ["__xfrm_policy_check*", "__xfrm_route_forward", "xfrm_lookup*", "xfrm_policy_lookup*", "ipsec_check_policy*", "key_allocsp*", "key_getsp*"];
    let Some(found) = cost_or_setting(case.spent(&functions), 0.02, unknown)? else { return Ok(None) };
    let (patch, untried) = in_lab(case, "ip xfrm policy flush");
    Ok(Some(Finding {
        statement: "Each frame is compared with IPsec policies.".into(),
        mechanism: "One policy in a namespace is enough: from then on, the kernel looks up policies for every frame that comes in and for every frame that leaves, also those of no tunnel.".into(),
        changes: vec![change("Linux", "interfaces of the kind xfrm instead of policies, or IPsec in a namespace of its own; ip xfrm policy deleteall where nothing uses them", "ip xfrm policy add with the former policies")],
        patch,
        untried,
        ..found
    }))
}
