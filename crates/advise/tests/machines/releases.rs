//! Settings that a release or a host lacks, and settings that are made already.

use super::{advice, item, router, wanted};
use linerate_advise::{Runtime, State};

#[test]
fn releases_decide_which_settings_there_are() {
    let of = |release: &str| advice(&router(release, "AMD GX-412TC SOC", 4, 1, "igb", 1e9));
    let old = of("10.3");
    let fast = item(&old, "freebsd-fastforwarding").unwrap();
    assert_eq!(fast.state, State::Change);
    let expected = Runtime::Sysctl {
        name: "net.inet.ip.fastforwarding".into(),
        value: "1".into(),
    };
    assert_eq!(fast.settings[0].runtime, Some(expected));
    let harvest = item(&old, "freebsd-harvest").unwrap();
    assert!(
        harvest.state == State::Absent
            && harvest
                .note
                .as_ref()
                .unwrap()
                .contains("kern.random.sys.harvest")
    );
    let new = of("12.4");
    assert_eq!(item(&new, "freebsd-redirect").unwrap().state, State::Change);
    assert_eq!(item(&new, "freebsd-redirect").unwrap().settings.len(), 2);
    assert_eq!(
        item(&new, "freebsd-rx-process-limit").unwrap().state,
        State::Absent
    );
    assert!(item(&new, "freebsd-upgrade").is_none());
    assert!(
        item(&of("14.1"), "freebsd-redirect")
            .unwrap()
            .note
            .as_ref()
            .unwrap()
            .contains("13.0")
    );
    // A line that is still written down although the release does not have the setting goes.
    let mut stale = router("12.4", "AMD GX-412TC SOC", 4, 1, "igb", 1e9);
    stale.boot.insert(
        "/etc/sysctl.conf".into(),
        [("net.inet.ip.fastforwarding".into(), "1".into())].into(),
    );
    stale.boot.insert(
        "/boot/loader.conf".into(),
        [("hw.igb.rxd".into(), "4096".into())].into(),
    );
    let all = advice(&stale);
    let gone = item(&all, "freebsd-fastforwarding").unwrap();
    assert_eq!(
        (
            gone.state,
            gone.settings[0].lasting.as_ref().unwrap().line.clone()
        ),
        (State::Undo, None)
    );
    let rings = item(&all, "freebsd-descriptors").unwrap();
    assert!(
        rings.state == State::Undo && rings.gain > 0.1 && rings.certainty == 0.9,
        "{rings:?}"
    );
}

#[test]
fn what_is_done_is_not_proposed() {
    let mut found = router("12.4", "AMD GX-412TC SOC", 4, 1, "igb", 1e9);
    for name in ["net.inet.ip.redirect", "net.inet6.ip6.redirect"] {
        found.sysctls.insert(name.into(), "0".into());
    }
    found
        .sysctls
        .insert("kern.random.harvest.mask".into(), "351".into());
    let all = advice(&found);
    assert_eq!(item(&all, "freebsd-redirect").unwrap().state, State::Done);
    assert_eq!(item(&all, "freebsd-harvest").unwrap().state, State::Done);
    // 13.2 after an upgrade: 991 has NET_ETHER off and INTERRUPT on.
    found
        .sysctls
        .insert("kern.random.harvest.mask".into(), "991".into());
    let mask = advice(&found);
    assert_eq!(
        wanted(
            item(&mask, "freebsd-harvest").unwrap(),
            "kern.random.harvest.mask"
        )
        .as_deref(),
        Some("863")
    );
}

#[test]
fn settings_that_the_host_lacks_are_not_proposed() {
    let mut found = router("12.4", "AMD GX-412TC SOC", 4, 1, "igb", 1e9);
    found.cards[0].settings.insert("debug".into(), "-1".into());
    found
        .sysctls
        .extend((0..30).map(|nth| (format!("net.inet.ip.x{nth}"), "0".into())));
    found
        .sysctls
        .insert("net.inet.ip.redirect".into(), "1".into());
    let all = advice(&found);
    let redirect = item(&all, "freebsd-redirect").unwrap();
    assert_eq!(
        (redirect.state, redirect.settings.len()),
        (State::Change, 1)
    );
    let mask = item(&all, "freebsd-harvest").unwrap();
    assert!(
        mask.state == State::Absent
            && mask
                .note
                .as_ref()
                .unwrap()
                .contains("kern.random.harvest.mask"),
        "{mask:?}"
    );
    // igb0 has told its settings, igb1 has not.
    let pause = item(&all, "freebsd-flow-control").unwrap();
    assert_eq!(
        pause
            .settings
            .iter()
            .map(|s| s.name.as_str())
            .collect::<Vec<_>>(),
        ["dev.igb.1.fc"]
    );
}
