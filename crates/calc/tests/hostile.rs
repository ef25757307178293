//! Whatever the numbers and the texts, a calculator gives a result with finite numbers or says why not; none panics.

use linerate_calc::bus::{Slot, pcie};
use linerate_calc::ethernet::{
    Headers, Load, Processors, Rate, budget, capacity, convert, imix, line_rate, overhead,
};
use linerate_calc::harvest::{Mask, harvest_mask};
use linerate_calc::queues::{Card, queues};
use linerate_calc::rss::{Fields, Key, Rss, rss, rss_even};
use linerate_calc::states::{
    Asked, conntrack, conntrack_buckets, conntrack_default, ipfw_buckets, ipfw_states,
    pf_hash_bytes, pf_states,
};
use linerate_calc::tcp::bdp;
use linerate_calc::trials::{self, trials};
use linerate_calc::{Amount, CalcError, Calculation};
use linerate_wire::{Family, FlowSpace, FrameMix};
use proptest::prelude::*;

/// Numbers as they should be and as they should not.
fn any_number() -> impl Strategy<Value = f64> {
    let odd = [
        0.0,
        -0.0,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        f64::MAX,
        1e-300,
        u64::MAX as f64,
    ];
    prop_oneof![1 => prop::sample::select(odd.to_vec()), 2 => any::<f64>(), 6 => (-3i32..20, 1.0..10.0f64).prop_map(|(power, n)| n * 10f64.powi(power))]
}

fn any_mix() -> impl Strategy<Value = FrameMix> {
    let lengths = prop::collection::vec(any::<u16>(), 0..4);
    prop_oneof![
        lengths.prop_map(|pattern| FrameMix {
            name: "x".into(),
            pattern
        }),
        Just(FrameMix::imix()),
        (64u16..16_000).prop_map(FrameMix::single),
    ]
}

fn sound(page: Result<Calculation, CalcError>) {
    match page {
        Err(error) => assert!(error.to_string().len() > 20, "{error}"),
        Ok(page) => {
            let cells = page
                .table
                .iter()
                .flat_map(|grid| grid.rows.iter().flatten());
            for amount in page
                .given
                .iter()
                .chain(&page.results)
                .map(|q| &q.amount)
                .chain(cells)
            {
                assert!(
                    !matches!(amount, Amount::Number { value, .. } if !value.is_finite()),
                    "{page:?}"
                );
                assert!(!amount.to_string().is_empty());
            }
            if let Some(grid) = &page.table {
                assert!(
                    grid.rows.iter().all(|row| row.len() == grid.columns.len()),
                    "{page:?}"
                );
            }
            assert!(!page.answer.is_empty() && !page.formula.is_empty() && !page.source.is_empty());
        }
    }
}

proptest! {
    #[test]
    fn rates(n in any_number(), mix in any_mix(), cores: u32, clock in any_number(), miss in any_number(), headers: (bool, bool, u8, u16)) {
        for load in [Load::Link(n), Load::Frames(n)] {
            sound(line_rate(load, std::slice::from_ref(&mix)));
            sound(imix(load, &mix));
            for cores in [cores, cores % 64] {
                let processors = Processors { cores, hertz: clock, miss_ns: miss };
                sound(budget(load, &mix, processors));
                sound(budget(load, &mix, Processors { cores, hertz: 3e9, miss_ns: 32.0 }));
                sound(capacity(n, &mix, processors));
            }
        }
        for rate in [Rate::Frames(n), Rate::Layer1(n), Rate::Layer2(n), Rate::Layer3(n)] {
            sound(convert(rate, &mix));
        }
        let (ipv6, tcp, vlans, options) = headers;
        sound(overhead(n, std::slice::from_ref(&mix), Headers { ipv6, tcp, vlans, options }));
        sound(overhead(1e10, &[mix], Headers { ipv6, tcp, vlans: vlans % 3, options: options % 40 }));
        sound(line_rate(Load::Link(n), &[]));
    }

    #[test]
    fn tables_windows_and_trials(n in any_number(), m in any_number(), count: u64) {
        for asked in [Asked::States(n), Asked::Connections(n), Asked::Hash(n)] {
            sound(pf_states(asked, Some(m)));
            sound(pf_states(asked, None));
            sound(ipfw_states(asked));
            sound(conntrack(asked, Some(m)));
            sound(conntrack(asked, None));
        }
        let _ = (pf_hash_bytes(count), ipfw_buckets(count), conntrack_buckets(count), conntrack_default(count));
        for (link, rtt, window) in [(Some(n), Some(m), None), (Some(n), None, Some(m)), (None, Some(n), Some(m)), (None, None, None)] {
            sound(bdp(link, rtt, window));
        }
        sound(pcie(None, n, Some(m), count as u32));
        sound(pcie(None, 256.0, Some(n), 1));
    }

    #[test]
    fn cards(cores: u32, most: u32, slots: u32, wanted in (any_number(), any_number()), mask: u32) {
        sound(queues(Card { cores, most, slots, wanted: Some(wanted) }));
        sound(queues(Card { cores: cores % 300, most: most % 300, slots: slots % 600, wanted: None }));
        sound(harvest_mask(Mask(mask), &["SWI"]));
        prop_assert_eq!(Mask(mask).to_string().parse::<Mask>(), Ok(Mask(mask)));
    }

    #[test]
    fn texts(text in "(pcie|gen|v|pci|pcix|0x|bit)?[0-9a-f.x:, \\[\\]GT/szMHbitUMASWI-]{0,24}|.{0,12}") {
        if let Ok(slot) = text.parse::<Slot>() {
            sound(pcie(Some(slot), 256.0, None, 1));
        }
        let _ = text.parse::<Mask>();
        let _ = text.parse::<Key>();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn few_trials_and_many(n in any_number(), deviation in any_number(), confidence in prop_oneof![any_number(), 0.5..0.99]) {
        sound(trials(trials::Asked::Difference(n), deviation, confidence));
        sound(trials(trials::Asked::Trials(n), deviation, confidence));
        sound(trials(trials::Asked::Difference(n), 0.01, confidence));
    }

    #[test]
    fn spreads(queues in 0u32..200, slots: u16, flows in 0u64..2000, ports: bool, v6: bool) {
        let fields = if ports { Fields::Ports } else { Fields::Addresses };
        let family = if v6 { Family::V6 } else { Family::V4 };
        for slots in [slots.into(), 1 << (slots % 9)] {
            if let Ok(card) = Rss::in_turn(Key::symmetric(), fields, queues, slots) {
                sound(FlowSpace::benchmark(family, flows as u32).map_err(CalcError::from).and_then(|space| rss(&card, &space)));
                sound(rss_even(&card, family, flows));
            }
        }
    }
}
