//! Texts and their values.

use super::*;
use crate::settings::DUTS;
use proptest::prelude::*;

fn help(form: &Form, text: &str) -> String {
    let wrong = form.read(text).unwrap_err();
    format!("{} | {}", wrong.message, wrong.remedy.unwrap_or_default())
}

#[test]
fn durations_say_their_unit() {
    assert_eq!(DURATION.read("250 ms"), Ok(json!(250_000_000)));
    assert_eq!(DURATION.read("1.5min"), Ok(json!(90_000_000_000_u64)));
    let bare = help(&DURATION, "250");
    assert!(
        bare.contains("write \"250 ns\" or \"250 us\" or \"250 ms\" or \"250 s\""),
        "{bare}"
    );
    assert!(help(&DURATION, "250 msec").ends_with("write \"250 ms\""));
    assert!(help(&DURATION, "2 m").ends_with("write \"2 min\""));
    assert!(help(&DURATION, "2 parsecs").contains("the units are ns"));
    assert!(help(&DURATION, "-2 s").contains("negative | write a duration such as"));
    assert!(
        ["soon", "", "1e400 h"]
            .iter()
            .all(|text| DURATION.read(text).is_err())
    );
    assert_eq!(
        [250_000_000, 90_000_000_000, 1, 0].map(duration_text),
        ["250 ms", "90 s", "1 ns", "0 ns"]
    );
}

#[test]
fn durations_of_the_command_line() {
    assert_eq!(parse_duration_ns("250ms"), Ok(250_000_000));
    assert_eq!(parse_duration_ns("2 s"), Ok(2_000_000_000));
    assert_eq!(parse_duration_ns("2m"), Ok(120_000_000_000));
    assert!(
        parse_duration_ns("5")
            .unwrap_err()
            .contains("no unit: write 5s")
    );
    assert!(parse_duration_ns("0s").is_err() && parse_duration_ns("25h").is_err());
    assert!(parse_duration_ns("ten").is_err());
}

#[test]
fn lengths_and_the_rest() {
    assert_eq!(SIZE.read("64 B").unwrap()["lengths_fcs"], json!([64]));
    assert_eq!(SIZE.read("imix").unwrap()["name"], "IMIX");
    assert!(help(&SIZE, "64").contains("\"64 B\""));
    assert!(help(&SIZE, "64 bytes").ends_with("write \"64 B\""));
    assert!(help(&SIZE, "63 B").contains("64 to 16000"));
    assert!(
        ["imx", "", "64.5 B"]
            .iter()
            .all(|text| SIZE.read(text).is_err())
    );
    assert_eq!(SHARE.read("2 %"), Ok(json!(0.02)));
    assert_eq!(PART.read("0 %"), Ok(json!(0.0)));
    assert!(help(&PART, "101 %").contains("not a share from 0 to 100 %"));
    assert!(help(&SHARE, "2").contains("\"2 %\""));
    assert_eq!(SPEED.read("10 Gbit/s"), Ok(json!(1e10)));
    assert_eq!(SPEED.read("10G"), SPEED.read("10 Gbit/s"));
    assert!(SPEED.read("10000000000").is_err() && SPEED.read("1e9 Tbit/s").is_err());
    assert_eq!(MEMORY.read("2 GiB"), Ok(json!(2_u64 << 30)));
    assert_eq!(CPU_LIST.read("0,2-3"), Ok(json!([0, 2, 3])));
    assert!(
        ["3-2", "", "0-9999"]
            .iter()
            .all(|text| CPU_LIST.read(text).is_err())
    );
    assert_eq!(VERSION.read("5.17"), Ok(json!([5, 17])));
    assert!(VERSION.read("5").is_err() && VERSION.read("x.y").is_err());
    assert_eq!(RATE.read("1000 kpps"), RATE.read("1Mpps"));
}

#[test]
fn networks_and_addresses() {
    assert_eq!(NETWORK.read("203.0.113.0/24"), Ok(json!("203.0.113.0/24")));
    assert!(NETWORK.read("203.0.113.0/33").is_err() && NETWORK.read("203.0.113.0").is_err());
    assert!(ADDRESS.read("198.18.0.300").is_err() && MAC.read("02:00:00:00:00:zz").is_err());
}

#[test]
fn every_kind_of_dut_is_read() {
    for (name, _) in DUTS {
        let example = name
            .replace("FRAME", "syn")
            .replace(['N', 'R'], "5")
            .replace(['T', 'S'], "5us");
        assert!(dut(&example).is_ok(), "{name}");
    }
    assert_eq!(
        dut("known-delay=5us").map(|d| d.to_string()),
        Ok("known-delay=5000ns".into())
    );
    assert_eq!(dut("known-delay=5000ns"), dut("known-delay=5us"));
    assert!(
        dut("frowarding")
            .unwrap_err()
            .remedy
            .unwrap()
            .contains("\"forwarding\"")
    );
    for bad in [
        "",
        "known-loss=0",
        "known-loss",
        "known-loss=5@sin",
        "known-loss=0@syn",
        "known-delay=1s",
        "known-delay=5",
        "pf",
    ] {
        assert!(dut(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in "[0-9a-zA-Zµ%./:_ -]{0,24}") {
        for form in [&DURATION, &LENGTH, &SIZE, &RATE, &SPEED, &SHARE, &MEMORY, &CPU_LIST, &FLOW_ORDER, &VERSION, &NETWORK, &ADDRESS, &MAC] {
            let _ = form.read(&text);
        }
    }
}
