use super::*;
use linerate_measure::watch::{Differ, Interface, Interrupt, Queue, Sample, Side, Softnet, Table};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// A router with this many queues and CPUs at a second: queue 1 has most frames and drops, queue 2 none, CPU 1 is full.
fn router(second: u64, queues: u64) -> Sample {
    let side = |packets: u64, drops: u64| Side {
        packets,
        bytes: 60 * packets,
        drops,
        ..Side::default()
    };
    let of_queue = |nth| match nth {
        1 => side(second * 900_000, second * 12_300),
        2 => side(0, 0),
        _ => side(second * 100_000, 0),
    };
    let all = (0..queues).map(|nth| of_queue(nth).packets).sum();
    let rx_queues = (0..queues).map(|nth| Queue {
        rx: Some(of_queue(nth)),
        tx: Some(side(second * 7000, 0)),
    });
    let eth0 = Interface {
        carrier: Some(true),
        speed: Some(1e10),
        rx: side(all, second * 12_300),
        queues: rx_queues.collect(),
        driver: [("rx_no_buffer_count".to_owned(), second * 12_300)].into(),
        ..Interface::default()
    };
    let eth1 = Interface {
        tx: side(all, 0),
        ..Interface::default()
    };
    let ticks = |cpu: u64| {
        [
            0,
            0,
            1,
            if cpu == 1 { 0 } else { 70 },
            0,
            0,
            if cpu == 1 { 99 } else { 29 },
            0,
        ]
    };
    let softnet = Softnet {
        processed: second * 900_000,
        dropped: 0,
        squeezed: second * 3,
    };
    Sample {
        at_ns: second * 1_000_000_000,
        interfaces: [("eth0".into(), eth0), ("eth1".into(), eth1)].into(),
        cpus: (0..queues as u32)
            .map(|cpu| (cpu, ticks(u64::from(cpu)).map(|tick| tick * second)))
            .collect(),
        interrupt_cpus: vec![0, 1],
        interrupts: vec![Interrupt {
            name: "36 eth0-rx-1".into(),
            counts: vec![0, second * 9000],
        }],
        softnet: [(1, softnet)].into(),
        states: Some(Table {
            entries: 200,
            limit: 1000,
        }),
        missing: vec!["rules: nft is not there".into()],
        ..Sample::default()
    }
}

fn shown(queues: u64) -> Shown {
    let mut differ = Differ::default();
    differ.take(router(1, queues));
    let rates = differ.take(router(2, queues));
    Shown {
        rates,
        history: [0.0, 1.0, 2.0].into(),
        name: "r1".into(),
        ..Shown::default()
    }
}

fn screen(shown: &Shown, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, shown)).unwrap();
    let buffer = terminal.backend().buffer();
    let row =
        |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect::<String>();
    buffer.content.chunks(usize::from(width)).map(row).collect()
}

#[test]
fn the_first_lines_answer_how_many_how_many_lost_and_why() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let screen = screen(&shown(4), width, height);
        assert!(
            screen[1].starts_with("1.10 Mpps in, 1.10 Mpps out, 12.3 kpps dropped (1.11 %)"),
            "{}",
            screen[1]
        );
        assert!(
            screen[2]
                .starts_with("Limit: CPU 1 is 100 % busy (99 % softirq), mostly for 36 eth0-rx-1"),
            "{}",
            screen[2]
        );
        assert!(
            screen[3].starts_with(
                "also:  rx queue 1 of eth0 drops 12.3 kpps and has 82 % of its frames"
            ),
            "{}",
            screen[3]
        );
        let line = |sign: &str| {
            screen
                .iter()
                .find(|line| line.contains(sign))
                .unwrap_or_else(|| panic!("{sign}: {screen:#?}"))
        };
        assert!(line("▸ eth0").contains("1.10M"), "{screen:#?}");
        assert!(
            line("   1▲").contains("12.3k"),
            "the queue that takes all drops: {screen:#?}"
        );
        assert!(
            line("Queues of eth0").contains("1 of 4 starve"),
            "{screen:#?}"
        );
        line("   2▽");
        line("connections");
    }
}

#[test]
fn a_large_screen_has_every_section() {
    let screen = screen(&shown(4), 200, 60).join("\n");
    for sign in [
        "36 eth0-rx-1",
        "rx_no_buffer_count",
        "rules: nft is not there",
        "squeezed",
        "L1",
        "11 %",
    ] {
        assert!(screen.contains(sign), "{sign}\n{screen}");
    }
}

#[test]
fn sixty_four_queues_find_room_or_are_counted() {
    let cells = |width, height, by_rate| {
        let shown = Shown {
            by_rate,
            ..shown(64)
        };
        screen(&shown, width, height)
    };
    let wide = cells(120, 40, false).join("\n");
    assert!(wide.contains(" 63 "), "{wide}");
    let small = cells(80, 24, true);
    let first = small
        .iter()
        .position(|line| line.contains("Queues of eth0"))
        .unwrap()
        + 1;
    assert!(
        small[first].starts_with("  1▲"),
        "the busiest comes first: {small:#?}"
    );
    assert!(small.iter().any(|line| line.contains("more")), "{small:#?}");
}

#[test]
fn no_size_and_no_host_makes_it_panic() {
    for shown in [
        Shown::default(),
        shown(0),
        shown(1),
        Shown {
            help: true,
            by_rate: true,
            ..shown(300)
        },
    ] {
        for (width, height) in [
            (1, 1),
            (20, 6),
            (21, 7),
            (40, 10),
            (80, 8),
            (116, 9),
            (176, 12),
            (300, 100),
        ] {
            screen(&shown, width, height);
        }
    }
}

#[test]
fn keys_lead_through_the_interfaces() {
    let mut shown = shown(4);
    let mark = |shown: &Shown| {
        let screen = screen(shown, 80, 24);
        screen
            .iter()
            .find(|line| line.contains('▸'))
            .map(|line| line[..12].to_owned())
    };
    assert!(mark(&shown).unwrap().contains("eth0"));
    shown.next_interface();
    assert!(mark(&shown).unwrap().contains("eth1"));
    shown.next_interface();
    assert!(mark(&shown).unwrap().contains("eth0"));
}
