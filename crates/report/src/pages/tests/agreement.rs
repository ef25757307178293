//! Sentences agree with their numbers: every figure of a page's sentences is in the record or its summary, to the digits that are printed,
//! and nothing is called faster, slower, more or less unless the interval in the same sentence excludes that there is no difference.

use super::*;
use linerate_explain::explain;
use linerate_measure::compare::{Rates, compare};
use linerate_measure::record::{Proof, SlotProfile, Stopped, TrialRecord};
use linerate_measure::summary::summarise;
use linerate_measure::tuning::{Stage, Tuned, confirming_runs, screening_runs};
use linerate_profile::Profile;
use linerate_stats::Estimate;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Variants whose names have no numbers, so that each number of a sentence is a figure. The last drops frames where the trials say so.
const PLAN: &[u8] = b"title = \"t\"\nquestion = \"q\"\n[traffic]\nsize = \"64 B\"\n[variants.plain]\n[variants.ruled]\n\
    sysctls = { \"net.core.netdev_budget\" = 100 }\n[variants.other]\nsysctls = { \"net.core.netdev_budget\" = 200 }\n\
    [compare]\nwith = \"plain\"\n[trials]\nduration = \"250 ms\"\nblocks = 10\n";

/// The words of a text, without the marks around them.
fn words(text: &str) -> Vec<&str> {
    let marks = |c: char| "(),;:'".contains(c);
    text.split_whitespace()
        .map(|word| {
            word.trim_matches(marks)
                .trim_end_matches('.')
                .trim_matches(marks)
        })
        .collect()
}

/// A printed number: its value and how far the figure may be from it.
fn number(word: &str) -> Option<(f64, f64)> {
    let plain = word.trim_start_matches(['+', '>', '<']).replace(',', "");
    if !plain
        .trim_start_matches('-')
        .starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let value: f64 = plain.parse().ok()?;
    let decimals = plain
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len() as i32);
    let zeros = plain.len() - plain.trim_end_matches('0').len();
    let last = if decimals > 0 {
        -decimals
    } else {
        zeros.min(plain.len() - 1) as i32
    };
    Some((value, 0.501 * 10f64.powi(last)))
}

/// `1.2..3.4`, or nothing.
fn range(word: &str) -> Option<[(f64, f64); 2]> {
    let (low, high) = word.split_once("..")?;
    Some([number(low)?, number(high)?])
}

/// All numbers of a record, and those that its pages make of one of them: percentages, changes, nanoseconds, other units.
fn figures(record: &Value, pool: &mut Vec<f64>) {
    match record {
        Value::Number(n) => pool.extend(n.as_f64()),
        Value::Array(all) => all.iter().for_each(|one| figures(one, pool)),
        Value::Object(all) => all.values().for_each(|one| figures(one, pool)),
        Value::String(text) => pool.extend(
            words(text)
                .into_iter()
                .filter_map(|word| Some(number(word)?.0)),
        ),
        _ => {}
    }
}

fn is_there(pool: &[f64], (value, within): (f64, f64)) -> bool {
    let forms = |v: f64| {
        [
            v,
            100.0 * v,
            100.0 * (v - 1.0),
            100.0 * (1.0 - v),
            100.0 * (1.0 / v - 1.0),
            1e9 / v,
            1.0 / v,
            1e-3 * v,
            1e-6 * v,
            1e-9 * v,
        ]
    };
    let close = |form: f64| (form.abs() - value.abs()).abs() <= within.max(1e-9);
    pool.iter().any(|v| forms(*v).into_iter().any(close))
}

/// The sentences of a page: its texts, not its tables, pictures and other programs' lines.
fn sentences(page: &Document) -> Vec<String> {
    said(page, |_| true)
}

/// The answers of a page, and all that calls something faster or slower, more or less.
fn answers(page: &Document) -> Vec<String> {
    let mut answers = said(page, |tone| tone == Tone::Strong);
    answers.extend(
        said(page, |tone| tone != Tone::Strong)
            .into_iter()
            .filter(|text| claim(text).is_some()),
    );
    answers
}

fn said(page: &Document, wanted: impl Fn(Tone) -> bool) -> Vec<String> {
    let text = |block: &&Block| match block {
        Block::Text { text, tone } | Block::Item { text, tone, .. } if wanted(*tone) => {
            Some(text.clone())
        }
        _ => None,
    };
    let split = |text: String| {
        text.split_inclusive(". ")
            .map(String::from)
            .collect::<Vec<_>>()
    };
    page.flat()
        .iter()
        .filter_map(text)
        .flat_map(split)
        .collect()
}

/// The figure of a sentence that calls something faster or slower, more or less, with its interval if it names one.
fn claim(sentence: &str) -> Option<(f64, Option<[f64; 2]>)> {
    let words = words(sentence);
    let called = |at: usize| {
        let next = |n: usize| words.get(at + n).copied().unwrap_or_default();
        let sign = |word: &str| ["faster", "slower", "more", "less", "fewer"].contains(&word);
        let unit = ["%", "ns", "us", "ms", "s"].contains(&next(1));
        unit && sign(next(2)) || next(1) == "times" && next(2) == "as"
    };
    let by = |at: usize| at > 1 && words[at - 1] == "by" && sentence.contains(" the DUT faster");
    let at =
        (0..words.len()).find(|at| number(words[*at]).is_some() && (called(*at) || by(*at)))?;
    let named = words.iter().position(|word| *word == "interval")?;
    let ends = range(words.get(named + 1)?).map(|ends| ends.map(|(value, _)| value));
    let apart = || {
        Some([
            number(words.get(named + 1)?)?.0,
            number(words.get(named + 3)?)?.0,
        ])
    };
    Some((number(words[at])?.0, ends.or_else(apart)))
}

/// The figures of these sentences that contradict the record.
fn contradictions(sentences: &[String], records: &[Value]) -> Vec<String> {
    let mut pool = vec![95.0];
    records.iter().for_each(|record| figures(record, &mut pool));
    let mut wrong = Vec::new();
    for sentence in sentences {
        for word in words(sentence) {
            let printed = range(word)
                .map_or_else(|| number(word).into_iter().collect(), |ends| ends.to_vec());
            if let Some(figure) = printed.into_iter().find(|figure| !is_there(&pool, *figure)) {
                wrong.push(format!("{} is in no record: {sentence}", figure.0));
            }
        }
        let signs = [
            " faster than",
            " slower than",
            " % more",
            " % less",
            " ns more",
            " ns less",
            " % fewer",
            "DUT faster, ",
        ];
        let (found, signed) = (
            claim(sentence),
            signs.iter().any(|sign| sentence.contains(sign))
                && !["may be", "undecided"]
                    .iter()
                    .any(|open| sentence.contains(open)),
        );
        let excludes = |[low, high]: [f64; 2], at: f64| low.max(high) < at || low.min(high) > at;
        match found {
            Some((figure, Some(ends))) => {
                // The ratio of something that is so many times as fast is above 1.
                let none = if sentence.contains(" times as ") {
                    1.0
                } else {
                    0.0
                };
                let ends = if ends[1] < 0.0 {
                    [-ends[1], -ends[0]]
                } else {
                    ends
                };
                if !excludes(ends, none) || !(ends[0]..=ends[1]).contains(&figure.abs()) {
                    wrong.push(format!("the interval does not show it: {sentence}"));
                }
                if sentence.contains(" instead of ") {
                    wrong.push(format!("figures of two sources: {sentence}"));
                }
            }
            Some((_, None)) => wrong.push(format!("no interval shows it: {sentence}")),
            None if signed => wrong.push(format!("no interval: {sentence}")),
            None => {}
        }
    }
    wrong
}

fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap()
}

/// Trials of all slots in blocks: `rates` of the variants, each trial off by one of `noise`; those that `valid` denies failed their audit.
fn trials(
    campaign: &Campaign,
    blocks: u32,
    rates: [f64; 3],
    noise: &[f64],
    valid: &[bool],
    dropped: f64,
) -> Vec<TrialRecord> {
    let mut all = Vec::new();
    for block in 0..blocks {
        for slot in &campaign.slots {
            let at = campaign
                .variants()
                .iter()
                .position(|variant| *variant == slot.plan_variant);
            let n = all.len();
            let fps = at.map_or(5e6, |at| rates[at]) * (1.0 + noise[n % noise.len()]);
            let passed = if at == Some(2) {
                fps * (1.0 - dropped)
            } else {
                fps
            };
            let mut trial = super::trial(n as u64, block, slot.id, fps, passed);
            if at.is_some() {
                trial
                    .losses
                    .iter_mut()
                    .for_each(|loss| loss.cause = linerate_measure::audit::Cause::Dropped);
            }
            trial.audit.valid &= valid[n % valid.len()];
            all.push(trial);
        }
    }
    all
}

/// The stacks of a profile of a variant: a part of the time of each that is its own.
fn profile(slot: usize, own: u64, rate: f64) -> (SlotProfile, Profile) {
    let stacks = Profile::of_folded(&format!(
        "a;veth_poll 500\na;ip_rcv 400\na;nft_do_chain {own}\n"
    ));
    let rates = [1.0, 0.99, 1.01, 1.0].map(|wobble| wobble * rate).to_vec();
    let of = SlotProfile {
        slot,
        samples: 900 + own,
        received: Some(rate),
        rates,
        frames: 1000,
        functions: stacks.functions(),
        ..SlotProfile::default()
    };
    (of, stacks)
}

/// The parts of a record and its stacks.
type Made<'a> = (
    &'a Campaign,
    &'a HostFacts,
    &'a [TrialRecord],
    &'a BTreeMap<usize, Profile>,
);

fn read<'a>((campaign, host, trials, stacks): Made<'a>, summary: &'a Summary) -> Records<'a> {
    Records {
        campaign,
        host,
        summary,
        trials,
        facts: &[],
        stacks,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_say_what_their_records_have(
        blocks in 0u32..12,
        rates in [2e5..2e6, 2e5..2e6, 2e5..2e6].prop_map(|rates: [f64; 3]| rates),
        equal in any::<bool>(),
        noise in prop::collection::vec(-0.2..0.2f64, 7..40),
        quiet in any::<bool>(),
        valid in prop::collection::vec(prop::bool::weighted(0.8), 5..30),
        dropped in prop_oneof![Just(0.0), 0.2..0.9f64],
    ) {
        let rates = if equal { [rates[0]; 3] } else { rates };
        let noise: Vec<f64> = noise.into_iter().map(|n| if quiet { n / 100.0 } else { n }).collect();
        let campaign = results::tests::campaign(PLAN, false);
        let trials = trials(&campaign, blocks, rates, &noise, &valid, dropped);
        let mut found = summarise(&campaign, &trials, Stopped::Trials, 12_900_000);
        let slots: Vec<usize> = campaign.slots.iter().filter(|slot| !slot.is_calibration()).map(|slot| slot.id).collect();
        let profiled = slots.iter().zip([10, 200, 400]).zip(rates);
        let profiled: Vec<_> = profiled.map(|((slot, own), rate)| profile(*slot, own, rate)).collect();
        let stacks: BTreeMap<usize, Profile> = profiled.iter().map(|(of, stacks)| (of.slot, stacks.clone())).collect();
        found.profiles = profiled.into_iter().map(|(of, _)| of).collect();
        let machine = host();
        let records = (&campaign, &machine, &trials[..], &stacks);
        found.explanations = explain(&read(records, &found));
        let own = |summary: &Summary| {
            // The time of the tester itself, and of a frame beyond the functions that are named.
            let rows = summary.rows.iter().filter_map(|row| Some(row.ns_per_frame - row.dut_ns_per_frame?));
            let ns = summary.rows.iter().flat_map(|row| row.baseline?.longer_ns(summary.rows[row.baseline?.than].ns_per_frame));
            (rows.collect::<Vec<_>>(), ns.collect::<Vec<_>>())
        };
        let base = [value(&campaign), value(&found), value(&machine), json!(own(&found)), json!([trials.len(), blocks])];
        for page in [summary(&campaign, &machine, &found), explanation(&campaign, &machine, &found, Extent::WithAbsent)] {
            let functions = found.explanations.iter().flat_map(|of| of.stages.iter().map(|stage| stage.ns));
            let base = [&base[..], &[json!(functions.collect::<Vec<_>>())]].concat();
            let wrong = contradictions(&answers(&page), &base);
            let wrong: Vec<_> = wrong.iter().filter(|wrong| !wrong.contains("all other functions")).collect();
            prop_assert!(wrong.is_empty(), "{wrong:#?}");
        }
        for pair in slots.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|slot| Rates::of_slot(campaign.name_of(slot).into(), slot, &campaign, &trials));
            let Some(compared) = compare(&a, &b, true, 0.95) else { continue };
            let page = comparisons(std::slice::from_ref(&compared), &[], &[], None);
            let said = answers(&page);
            let wrong = contradictions(&said, &[value(&compared), json!([a.values.len(), b.values.len()])]);
            prop_assert!(wrong.is_empty(), "{wrong:#?}");
            let records = read(records, &found);
            let cases = [pair[0], pair[1]].map(|slot| records.case(&campaign.slots[slot]));
            let [Some(before), Some(after)] = &cases else { continue };
            let ratio = compared.handled.as_ref().unwrap_or(&compared.change).ratio;
            let Ok(between) = linerate_explain::difference([before, after], ratio) else { continue };
            let parts: Vec<f64> = between.stages.iter().map(linerate_explain::Part::longer).collect();
            let wrong = contradictions(&sentences(&difference(&between, "frame")), &[value(&between), json!(parts)]);
            prop_assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }

    #[test]
    fn a_tuning_says_what_its_record_has(
        effects in prop::collection::vec(0.5..1.6f64, 3),
        noise in prop::collection::vec(-0.3..0.3f64, 7..40),
        valid in prop::collection::vec(prop::bool::weighted(0.8), 5..30),
        last in (0.2..1.8f64, prop::option::of((0.01..0.9f64, 0.01..0.9f64))),
    ) {
        let stage = |name: &str, changes: Vec<usize>, runs: Vec<Vec<bool>>| {
            let slots: Vec<usize> = (1..=runs.len()).collect();
            let mut trials = Vec::new();
            for block in 0..4 {
                for (run, slot) in runs.iter().zip(&slots) {
                    let on = run.iter().zip(&changes).filter(|(on, _)| **on).map(|(_, change)| effects[*change]);
                    let n = trials.len();
                    let fps = 1e6 * on.product::<f64>() * (1.0 + noise[n % noise.len()]);
                    let mut trial = super::trial(n as u64, block, *slot, fps, fps);
                    trial.audit.valid = valid[n % valid.len()];
                    trials.push(trial);
                }
            }
            let (records, levels, trials_of, warnings) = (String::new(), Vec::new(), [0; 2], Vec::new());
            let mut stage = Stage { name: name.into(), records, changes, runs, levels, trials: trials_of, warnings };
            stage.measure(&slots, &trials);
            stage
        };
        let mut tuned = Tuned::new("t".into(), "p".into(), ["a", "b", "c"].map(|name| (name.to_string(), Vec::new())));
        let survivors = tuned.screened(stage("screening", vec![0, 1, 2], screening_runs(&[0, 1, 2]))).unwrap_or_default();
        if !survivors.is_empty() {
            let runs = confirming_runs(&tuned.factor_of(&survivors));
            let kept = tuned.confirmed(stage("confirmation", survivors, runs)).unwrap_or_default();
            for change in &tuned.changes {
                let side = change.confirmed.and_then(|confirmed| confirmed.ratio.side_of(1.0));
                use linerate_measure::tuning::Verdict::{Harmful, Kept};
                prop_assert!(!matches!(change.verdict, Kept | Harmful) || side.is_some(), "{change:#?}");
            }
            let (median, ends) = last;
            let [low, high] = [ends.map(|(below, _)| median * (1.0 - below)), ends.map(|(_, above)| median * (1.0 + above))];
            let ratio = Estimate { median, low, high, n: 6 };
            tuned.together = (!kept.is_empty()).then(|| Proof::of(ratio, "r".into()));
        }
        let names = |verdict| tuned.changes.iter().filter(|change| change.verdict == verdict).count();
        let counts = json!([names(linerate_measure::tuning::Verdict::Kept), tuned.changes.len()]);
        let runs: Vec<[usize; 2]> = tuned.stages.iter().map(|stage| [stage.runs.len(), stage.changes.len()]).collect();
        let page = tuning(&tuned);
        let wrong = contradictions(&sentences(&page), &[value(&tuned), value(&tuned.confirmed_gain()), counts, json!(runs)]);
        prop_assert!(wrong.is_empty(), "{wrong:#?}");
        // Without an interval above 1 nothing makes the DUT faster.
        let shown = tuned.together.as_ref().and_then(|proof| proof.ratio?.side_of(1.0));
        let says = sentences(&page).iter().any(|sentence| sentence.contains("the DUT faster, "));
        prop_assert_eq!(says, shown.is_some_and(std::cmp::Ordering::is_gt));
    }
}

/// Sentences that stood on pages.
#[test]
fn sentences_that_contradict_their_numbers_are_found() {
    let record = json!([
        3280.0, -3280.5, 10791.0, 20993.0, -471.0, 2182.0, 330.0, 1, 10, 0.299, 4013, 3586
    ]);
    for sentence in [
        "A frame takes 3280 ns more with b than with a: 10791 instead of 20993 ns (95 % interval -3280 to +2182 ns).",
        "A frame takes 330 ns more with b than with a: 4013 instead of 3586 ns (95 % interval -471 to +2182 ns).",
        "1 of 10 changes makes the DUT faster, by -70.1 %: a.",
        "A frame takes 10203 ns less with b than with a.",
        "a is 31 % slower than b.",
    ] {
        let mut page = Document::default();
        page.say(sentence);
        assert!(
            !contradictions(&sentences(&page), std::slice::from_ref(&record)).is_empty(),
            "{sentence}"
        );
    }
    let mut page = Document::default();
    page.say("A frame takes 330 ns more with b than with a (95 % interval +330 to +2182 ns).");
    assert_eq!(
        contradictions(&sentences(&page), &[record]),
        Vec::<String>::new()
    );
}
