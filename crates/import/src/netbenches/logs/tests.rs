use super::*;
use proptest::prelude::*;

fn line(pps: u64) -> String {
    format!(
        "022.940404 main_thread [2277] {pps} pps ({pps} pkts 164872800 bps in 1000000 usec) 2.57 avg_batch 0 min_space"
    )
}

/// A log with a header of 10 lines, these rates, and a last line.
fn log(rates: &[u64]) -> String {
    let mut text = "000.000000 main [1] header\n".repeat(10);
    for rate in rates {
        text += &line(*rate);
        text.push('\n');
    }
    text + "Terminated\n"
}

fn archive(text: &str) -> (usize, Option<Medians>) {
    let Received { run, medians, .. } = Received::read("x", text.as_bytes());
    (run.trial.samples.unwrap(), medians)
}

#[test]
fn lines_are_dropped_not_samples() {
    // 31 lines: 16 to 21 are kept, which are samples 6 to 11.
    let rates: Vec<u64> = (1..=20).collect();
    assert_eq!(
        archive(&log(&rates)),
        (
            6,
            Some(Medians {
                mean: 8.5,
                upper: 9.0
            })
        )
    );
    let chatty = "+ eval ssh\n".repeat(5) + &log(&rates);
    assert_eq!(archive(&chatty).1.unwrap().mean, 6.0);
}

#[test]
fn lines_that_the_script_alone_reads_are_no_samples() {
    let text = log(&(1..=20).collect::<Vec<u64>>()).replace("022.940404", "022.940");
    let Received { run, medians, .. } = Received::read("x", text.as_bytes());
    assert_eq!(medians.unwrap().mean, 8.5);
    let [problem] = &run.trial.problems[..] else {
        panic!("{:?}", run.trial.problems);
    };
    assert!(
        problem.starts_with("6 lines have a rate") && problem.contains("SSS.uuuuuu main_thread"),
        "{problem}"
    );
}

#[test]
fn zeros_do_not_count_and_three_points_are_needed() {
    let mut rates = vec![0; 20];
    rates[7] = 5;
    rates[8] = 7;
    assert_eq!(archive(&log(&rates)), (2, None));
    rates[9] = 6;
    assert_eq!(archive(&log(&rates)).1.unwrap().mean, 6.0);
    assert_eq!(archive(&log(&[0; 20])), (0, None));
}

#[test]
fn short_logs_keep_what_freebsds_head_and_tail_keep() {
    assert_eq!([0, 9, 10, 25].map(kept_lines), [None; 4]);
    assert_eq!(kept_lines(26), Some((16, 16)));
    assert_eq!(kept_lines(24), Some((14, 14)));
    assert_eq!(kept_lines(20), Some((6, 10)));
    assert_eq!(kept_lines(11), Some((1, 1)));
    let all: String = (1..=20).map(|r| line(r) + "\n").collect();
    assert_eq!(archive(&all).1.unwrap().mean, 8.0);
}

#[test]
fn a_last_line_without_newline_is_never_kept() {
    let text = log(&(1..=20).collect::<Vec<u64>>());
    assert_eq!(archive(text.trim_end()).0, 5);
}

#[test]
fn eight_digits_remain() {
    let rates: Vec<u64> = [
        vec![1; 6],
        vec![14_880_952, 14_880_953],
        vec![14_880_952, 14_880_953],
        vec![9; 9],
    ]
    .concat();
    let (n, medians) = archive(&log(&rates[1..]));
    assert_eq!((n, medians.unwrap().mean), (4, 14_880_952.0));
    assert_eq!(printed(123_456_789.0), 123_456_790.0);
    assert_eq!(printed(1_203_006.5), 1_203_006.5);
}

#[test]
fn the_expression_matches_anywhere_and_the_field_is_cut_at_blanks() {
    let main_thread = Finder::new(b"main_thread");
    let field = |text: &str| fourth_field(text.as_bytes(), &main_thread);
    assert_eq!(field("x main_thread [1] 5 pps"), Some(Some(5.0)));
    assert!(
        field("+ x y main_thread [1] 5 pps")
            .flatten()
            .is_some_and(f64::is_nan)
    );
    assert_eq!(field("1 2 3 44 main_thread [1] 5 pps"), Some(Some(44.0)));
    assert_eq!(field("x main_thread [1] 0 pps"), None);
    assert_eq!(field("x main_thread [] 5 pps"), None);
    assert_eq!(field("x main_thread [1]  5 pps"), None);
    assert_eq!(field("x main_thread\t[1]\t5pps"), Some(None));
    assert!(
        field("main_thread\t[1]\t5pps")
            .flatten()
            .is_some_and(f64::is_nan)
    );
    assert_eq!(
        field("x main_thread [1] 1.488 Mpps (1 Mpkts"),
        Some(Some(1.488))
    );
}

#[test]
fn a_field_that_is_no_number_fails_the_run() {
    let mut lines: Vec<String> = log(&[5; 20]).lines().map(String::from).collect();
    lines[17] = format!("junk {}", lines[17]);
    assert_eq!(archive(&(lines.join("\n") + "\n")).1, None);
}

proptest! {
    #[test]
    fn the_median_is_that_of_sorting(rates in prop::collection::vec(1u64..20_000_000, 15..60)) {
        let (n, medians) = archive(&log(&rates));
        let kept = &rates[5..rates.len() - 9];
        let mut sorted: Vec<f64> = kept.iter().map(|r| *r as f64).collect();
        sorted.sort_by(f64::total_cmp);
        prop_assert_eq!(n, sorted.len());
        if n >= 3 {
            let upper = sorted[n / 2];
            let lower = sorted[(n - 1) / 2];
            prop_assert_eq!(medians, Some(Medians { mean: printed((lower + upper) / 2.0), upper }));
        }
    }
}
