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

/// A queue of 128 frames on each CPU, drained at 20,000 frames/s. Bursts of 64 frames pass, and of those of 512 most frames are lost, at
/// the same mean rate.
const BURSTS: &str = r#"
title = "Bursts"
question = "Does a queue hold them?"
[traffic]
rate = "10 kpps"
flows = 1
[variants.queue]
from = "known-queue=128@20000"
[factors.burst]
sets = "traffic.burst"
levels = [64, 512]
[lab]
mode = "threaded"
[trials]
duration = "120 ms"
blocks = 2
"#;

#[test]
#[ignore = "needs root"]
fn bursts_come_with_pauses_and_overrun_a_queue_that_is_too_short() {
    for more in ["", "--port af-packet"] {
        let port = if more.is_empty() { String::new() } else { "port = \"af-packet\"\n".into() };
        let experiment = Experiment::new(&BURSTS.replace("[trials]", &format!("{port}[trials]")), "");
        experiment.run("").first().run().ok();
        let slots = experiment.document("campaign.json")["slots"].clone();
        let mut seen = [0; 2];
        for trial in experiment.trials() {
            let slot = &slots[trial["slot"].as_u64().unwrap() as usize];
            // A stall of this machine moves frames of a window to the next one.
            if slot["ceiling"].is_null() || trial["audit"]["valid"] == false {
                continue;
            }
            let burst = slot["traffic"]["burst"].as_u64().unwrap();
            let of = |key: &str| trial["generator"][key].as_u64().unwrap_or(0);
            assert_eq!(of("bursts"), of("frames") / burst, "{trial:#}");
            let loss = trial["loss_ratio"].as_f64().unwrap();
            match burst {
                512 => assert!((0.5..0.75).contains(&loss), "{trial:#}"),
                _ => assert_eq!(loss, 0.0, "{trial:#}"),
            }
            seen[[64, 512].iter().position(|of| *of == burst).unwrap()] += 1;
        }
        assert!(seen.iter().all(|trials| *trials > 0), "{seen:?}");
    }
}
