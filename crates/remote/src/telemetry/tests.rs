//! Outputs of the hosts' programs as artefacts, and programs that are run on simulated hosts.

use super::*;
use crate::ExecutionTarget;
use std::sync::Arc;

#[test]
fn distributions_of_dtrace_are_times_in_the_stack() {
    let head = "           value  ------------- Distribution ------------- count\n";
    let text = format!(
        "  ether_input to ether_demux\n{head}  128 | 0\n  256 |@@@ 40\n  512 | 0\n\n  ether_input to ether_output\n{head}  1024 |@@@ 30\n  2048 |@ 1\n"
    );
    let Ok(Artefact::Stages(times)) = timed(&text, "") else {
        panic!("{text}")
    };
    assert_eq!(
        (times.followed, times.whole.count(), times.clock_ns),
        (40, 31, 0)
    );
    assert_eq!(
        (times.steps[0].from.as_str(), times.steps[0].to.as_str()),
        ("ether_input", "ether_demux")
    );
    assert!(
        times.whole.quantile(0.5).unwrap().abs_diff(1536) < 50,
        "{:?}",
        times.whole
    );
    for nothing in [
        "",
        "dtrace: failed",
        &text[..text.find("  ether_input to ether_output").unwrap()],
    ] {
        timed(nothing, "").unwrap_err();
    }
}

/// In the form of dtrace(1): the key's text, its stack, and the value.
const OF_DTRACE: &str = "found:1242

  lock em0 core                                     
              kernel`__mtx_lock_sleep+0xd0
              if_em.ko`iflib_txq_drain+0x12b
              kernel`ether_output+0x30
             1636032
  lock rtentry                                      
              kernel`__rw_wlock_hard+0x8e
              kernel`ip_output+0x7
               50000
  lock sched lock 0                                 
              kernel`thread_lock_flags_+0x100
              kernel`ipi_bitmap_handler+0x88
              kernel`Xipi_intr_bitmap_handler+0xb5
              kernel`ip_tryforward+0x200
              kernel`ether_input+0x50
            99000000
  lock dtrace state                                 
              kernel`__mtx_lock_sleep+0xd0
              dtrace.ko`dtrace_state_clean+0x3a
              kernel`softclock_call_cc+0x139
             7000000
  times                                             
              kernel`__mtx_lock_sleep+0xd0
              if_em.ko`iflib_txq_drain+0x12b
              kernel`ether_output+0x30
                  40
  times                                             
              kernel`__rw_wlock_hard+0x8e
              kernel`ip_output+0x7
                   2
  times                                             
              kernel`thread_lock_flags_+0x100
              kernel`ipi_bitmap_handler+0x88
              kernel`Xipi_intr_bitmap_handler+0xb5
              kernel`ip_tryforward+0x200
              kernel`ether_input+0x50
                1200
";

/// A simulated FreeBSD host, whose DTrace prints this about what it is asked.
fn probed(
    script: String,
    read: Read,
    prints: &[(&str, &str)],
    modules: &str,
) -> Result<Vec<Artefact>, String> {
    let simulated = concat!(env!("CARGO_MANIFEST_DIR"), "/../linerate/tests/bsd-host");
    let state = std::env::temp_dir().join(format!(
        "linerate-dtrace-{}-{}",
        std::process::id(),
        prints.len()
    ));
    std::fs::create_dir_all(state.join("dtrace")).unwrap();
    for (file, text) in [("system", "freebsd\n"), ("modules", modules)] {
        std::fs::write(state.join(file), text).unwrap();
    }
    prints
        .iter()
        .for_each(|(file, text)| std::fs::write(state.join("dtrace").join(file), text).unwrap());
    let command = format!(
        "PATH={simulated}/bin:$PATH; export PATH BSD_HOST={}; {script}",
        state.display()
    );
    let target = ExecutionTarget::Here {
        name: "router".into(),
        netns: None,
    };
    let host = Observed {
        target: Arc::new(target),
        sudo: false,
    };
    let under = UnderLoad::one(host, Ok(command), MOST_STACKS, Begins::Printed);
    let mut probed = Probed {
        name: "probe",
        under,
        read,
    };
    probed.before().unwrap();
    let found = probed.after();
    assert!(!state.join("log").exists(), "the host was changed");
    std::fs::remove_dir_all(&state).unwrap();
    found
}

#[test]
fn dtrace_is_run_on_a_host_and_interrupted_after_the_load() {
    let script = || dtrace("", LOCKS_OF_FREEBSD);
    let found = probed(
        script(),
        waited,
        &[("locks", OF_DTRACE)],
        "dtraceall\ndtrace\n",
    )
    .unwrap();
    assert!(
        matches!(&found[..], [Artefact::Waited(Waited { waits: 42, .. })]),
        "{found:?}"
    );
    // As FreeBSD 13 has no probes of counters.
    let why = probed(dtrace("", DROPS_OF_FREEBSD), dropped, &[], "dtrace\n").unwrap_err();
    assert!(
        why.contains("mib:ip:count:ips_bad* does not match any probes"),
        "{why}"
    );
    let why = probed(script(), waited, &[("locks", ""), ("drops", "")], "pf\n").unwrap_err();
    assert!(
        why.contains("DTrace is not loaded there") && why.contains("kldload dtraceall"),
        "{why}"
    );
}

/// A profiler that takes longer to end than other commands may.
#[test]
fn a_profile_is_waited_for() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("linerate-perf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let perf = "#!/bin/sh\ncase $1 in\nrecord) trap 'sleep 3; exit' TERM; echo begun >&2; sleep 3600 & wait ;;\n\
        script) printf 'swapper 0 [000] 1.0: 1 cycles:\\n\\tffffffff8103ce3b ip_forward+0x1 ([kernel.kallsyms])\\n\\n' ;;\nesac\n";
    let path = folder.join("perf");
    std::fs::write(&path, perf).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let target = ExecutionTarget::Here {
        name: "router".into(),
        netns: None,
    };
    let host = Observed {
        target: Arc::new(target),
        sudo: false,
    };
    let command = format!(
        "PATH={}:$PATH; {}",
        folder.display(),
        profiler(Kernel::Linux).unwrap()
    );
    let under = UnderLoad::one(host, Ok(command), MOST_STACKS, Begins::Announced);
    let mut probed = Probed {
        name: profile::NAME,
        under,
        read: sampled,
    };
    probed.before().unwrap();
    let found = probed.after();
    std::fs::remove_dir_all(&folder).unwrap();
    let Ok([Artefact::Profile(Sampled { profile, .. })]) = found.as_deref() else {
        panic!("{found:?}")
    };
    assert_eq!(profile.lines(), ["swapper;ip_forward 1"]);
}

#[test]
fn waits_for_locks_of_freebsd() {
    let errors = "dtrace: 17 aggregation drops on CPU 0\ndtrace: 3 drops on CPU 1\nwarning";
    let Ok(Artefact::Waited(Waited {
        waits,
        lost,
        profile,
        beside,
    })) = waited(OF_DTRACE, errors)
    else {
        panic!()
    };
    assert_eq!((waits, lost), (42, 20));
    let others = beside.waiting();
    let others: Vec<_> = others
        .iter()
        .filter(|f| f.own > 0)
        .map(|f| (f.name.as_str(), f.own))
        .collect();
    assert_eq!(
        others,
        [
            ("ipi_bitmap_handler", 99_000_000),
            ("dtrace_state_clean", 7_000_000)
        ]
    );
    assert_eq!(
        profile.lines(),
        [
            "ether_output;iflib_txq_drain;__mtx_lock_sleep;lock em0 core 1636032",
            "ip_output;__rw_wlock_hard;lock rtentry 50000"
        ]
    );
    let mut waiting = Waited {
        waits,
        lost,
        profile,
        beside,
    }
    .functions();
    waiting.retain(|function| function.own > 0);
    let waiting: Vec<&str> = waiting
        .iter()
        .map(|function| function.name.as_str())
        .collect();
    assert_eq!(waiting, ["iflib_txq_drain", "ip_output"]);
    assert_eq!(
        waited("found:\n", ""),
        Ok(Artefact::Waited(Waited::default())),
        "no CPU waited"
    );
    for cut in ["", "  lock em0 core\n", "found:x\n", &OF_DTRACE[11..]] {
        waited(cut, "").unwrap_err();
    }
}

#[test]
fn drops_of_freebsd_by_counter_and_function() {
    let text = "found:9

  ips_noroute                                       
              kernel`sdt_probe+0x11
              kernel`ip_tryforward+0x5d
              kernel`ip_input+0x1ff
                   7
  ip6s_cantforward                                  
              kernel`ip6_forward+0x20
                   2
";
    let counters = [
        ("drop ip6s_cantforward in ip6_forward", 2),
        ("drop ips_noroute in ip_tryforward", 7),
    ];
    let counters = counters.map(|(name, n)| (name.to_string(), n)).into();
    assert_eq!(dropped(text, ""), Ok(Artefact::Counters(counters)));
    assert_eq!(
        dropped("found:\n", ""),
        Ok(Artefact::Counters(Counters::new()))
    );
    dropped("", "").unwrap_err();
}

#[test]
fn samples_of_dtrace_are_by_function_alone_and_without_idle_cpus() {
    let text = "\n\n              kernel`ipfw_chk+0x1\n              ipfw.ko`ipfw_check_frame+0x2\n  12\n\n              kernel`cpu_idle+0x1\n              kernel`fork_exit+0x9\n  900\n";
    let Ok(Artefact::Profile(Sampled { profile, event, .. })) = sampled(text, "") else {
        panic!()
    };
    assert_eq!(
        (profile.lines(), event.as_str()),
        (
            vec!["ipfw_check_frame;ipfw_chk 12".to_string()],
            "DTrace's profile-997"
        )
    );
}

#[test]
fn the_json_of_a_linerate_there_is_read() {
    let mut waited = Waited {
        waits: 2,
        lost: 1,
        ..Waited::default()
    };
    waited.profile.add("a;b", 700);
    let printed =
        serde_json::json!({"waits": 2, "lost": 1, "profile": {"a;b": 700}, "functions": []});
    assert_eq!(
        of_linerate(locks::NAME)(&printed.to_string(), ""),
        Ok(Artefact::Waited(waited))
    );
    let dropped = [("drop X in y".to_string(), 3)].into();
    assert_eq!(
        of_linerate("drops")("{\"drop X in y\": 3}", ""),
        Ok(Artefact::Counters(dropped))
    );
    assert!(
        of_linerate(stages::NAME)("Half of the frames", "")
            .unwrap_err()
            .contains("same linerate")
    );
}
