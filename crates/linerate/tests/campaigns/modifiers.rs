//! RFC 2544's modifiers are in the frames and in the DUT, and every frame is accounted for.

use super::experiment::Experiment;
use serde_json::Value;

const PLAN: &str = r#"
title = "Modifiers"
question = "Are they there?"
[traffic]
format = "rfc2544"
flows = 256
networks = 256
order = "random"
ports = "random:7"
broadcast-every = 100
[variants.forwarding]
[collect]
commands = [
  "ip route",
]
[lab]
batch = 32
[trials]
duration = "50 ms"
blocks = 2
"#;

#[test]
#[ignore = "needs root"]
fn broadcast_frames_count_apart_and_256_networks_have_routes() {
    let experiment = Experiment::new(PLAN, "");
    experiment.run("").first().run().ok();
    let slots = experiment.document("campaign.json")["slots"].clone();
    let traffic = &slots[1]["traffic"];
    assert_eq!(traffic["flows"]["destination"], "198.19.0.66:7-198.19.255.66", "{traffic}");
    assert_eq!(
        (&traffic["flows"]["ports"], &traffic["frame"]["may_fragment"]),
        (&"random:7".into(), &true.into())
    );
    for trial in experiment.trials() {
        assert_eq!(trial["audit"]["valid"], true, "{trial:#}");
        let count = |of: &str| trial["generator"][of].as_u64().unwrap();
        let (frames, broadcasts) = (count("frames"), count("broadcasts"));
        assert!((frames / 99).abs_diff(broadcasts) <= 1, "{broadcasts} beside {frames}");
        assert_eq!(trial["loss_ratio"], 0.0, "{trial:#}");
        if slots[trial["slot"].as_u64().unwrap() as usize]["ceiling"].is_null() {
            assert_eq!(trial["receiver"]["foreign"]["IPv4"], broadcasts, "the tester alone lets them pass");
            continue;
        }
        let losses = trial["losses"].as_array().unwrap();
        let at: Vec<(&Value, &Value)> = losses.iter().map(|l| (&l["cause"], &l["frames"])).collect();
        assert_eq!(at, [(&"not-forwarded".into(), &broadcasts.into())]);
        let routes = trial["collected"][0]["output"]["Ok"].as_str().unwrap();
        let own = routes.lines().filter(|line| line.contains("/24 via 198.19.0.2")).count();
        assert_eq!(own, 256, "{routes}");
    }
}
