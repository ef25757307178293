//! Connecting, and its faults: each is distinguished, and names a remedy.

use crate::sshd::SshLab;
use linerate_remote::{Connection, ExecutionTarget, Fault, Order, Target};
use std::time::{Duration, Instant};

/// The fault with which a connection fails.
#[track_caller]
fn fails(lab: &SshLab, target: &Target, says: &[&str]) -> Fault {
    let began = Instant::now();
    let error = lab.enter(|| Connection::open(target, None).unwrap_err());
    assert!(
        began.elapsed() < target.connect_within + Duration::from_secs(30),
        "{error}"
    );
    for part in says {
        assert!(error.to_string().contains(part), "no '{part}' in: {error}");
    }
    error.fault
}

#[test]
#[ignore = "needs root and openssh-server"]
fn unknown_keys_are_refused_unless_they_are_allowed_and_changed_ones_always() {
    let mut lab = SshLab::new(&["r1"]);
    std::fs::write(lab.known_hosts(), "").unwrap();
    let mut target = lab.target("r1");
    assert_eq!(
        fails(&lab, &target, &["r1: ", "compare its fingerprint"]),
        Fault::UnknownKey
    );
    target.accept_new = true;
    drop(lab.enter(|| Connection::open(&target, None).unwrap()));
    target.accept_new = false;
    drop(lab.enter(|| Connection::open(&target, None).unwrap()));
    lab.host("r1").change_key();
    target.accept_new = true;
    let says = ["r1: ", "Offending", "known_hosts", "ssh-keygen -R"];
    assert_eq!(fails(&lab, &target, &says), Fault::ChangedKey);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn what_is_wrong_is_told_apart() {
    let mut lab = SshLab::new(&["r1"]);
    let target = lab.target("r1");
    let mut other = target.clone();
    other.port = Some(23);
    assert_eq!(
        fails(&lab, &other, &["r1: ", "start sshd there"]),
        Fault::Refused
    );
    other = target.clone();
    other.address = "nowhere.invalid".into();
    assert_eq!(
        fails(&lab, &other, &["nowhere.invalid"]),
        Fault::NotResolved
    );
    other = target.clone();
    other.user = Some("nobody-of-that-name".into());
    assert_eq!(fails(&lab, &other, &["ssh-add"]), Fault::Authentication);
    other = target.clone();
    other.address = "198.19.0.1".into();
    assert_eq!(fails(&lab, &other, &["routes"]), Fault::NoRoute);
    other = target.clone();
    let config = lab.folder().join("wrong");
    std::fs::write(&config, "Nonsense yes\n").unwrap();
    other.config = Some(config);
    assert_eq!(
        fails(&lab, &other, &["nonsense", "line 1"]),
        Fault::Configuration
    );
    other = target.clone();
    other.connect_within = Duration::from_secs(1);
    lab.host("r1").signal_sshd(libc::SIGSTOP);
    assert_eq!(
        fails(&lab, &other, &["see whether it is up"]),
        Fault::TimedOut
    );
}

#[test]
#[ignore = "needs root and openssh-server"]
fn a_host_that_runs_no_commands_says_what_it_says() {
    let lab = SshLab::with_settings(&["r1"], "ForceCommand echo This account is not available.");
    assert_eq!(
        fails(&lab, &lab.target("r1"), &["This account is not available."]),
        Fault::NoShell
    );
}

#[test]
#[ignore = "needs root, openssh-server and tcsh"]
fn login_shells_may_be_csh_and_print_what_they_like() {
    let chatter = "ForceCommand echo Welcome; exec tcsh -c \"$SSH_ORIGINAL_COMMAND\"";
    let lab = SshLab::with_settings(&["r1"], chatter);
    lab.enter(|| {
        let place = ExecutionTarget::connect(&lab.target("r1"), None).unwrap();
        let finished = place
            .run(&Order::new("echo '!x $HOME'; echo a >&2; exit 4"), None)
            .unwrap();
        assert_eq!(
            (finished.text().as_str(), finished.errors().as_str()),
            ("!x $HOME\n", "a\n")
        );
    });
}

#[test]
#[ignore = "needs root and openssh-server"]
fn many_hosts_are_connected_at_once_and_each_says_what_is_wrong() {
    let mut lab = SshLab::new(&["r1", "r2", "r3"]);
    lab.host("r2").kill_sshd();
    let targets = lab.targets();
    let answers = lab.enter(|| ExecutionTarget::connect_all(&targets, None));
    let faults: Vec<_> = answers
        .iter()
        .map(|a| a.as_ref().err().map(|e| (e.host.as_str(), e.fault)))
        .collect();
    assert_eq!(faults, [None, Some(("r2", Fault::Refused)), None]);
}

#[test]
#[ignore = "needs root and openssh-server"]
fn the_connection_ends_when_it_is_dropped() {
    let lab = SshLab::new(&["r1"]);
    let connection = lab.enter(|| Connection::open(&lab.target("r1"), None).unwrap());
    let process = std::path::PathBuf::from(format!("/proc/{}", connection.process()));
    assert!(process.exists() && lab.hosts[0].running("sshd: root@") > 0);
    drop(connection);
    assert!(!process.exists());
    crate::sshd::wait_until("the end of the session", Duration::from_secs(30), || {
        lab.hosts[0].running("sshd: root@") == 0
    });
}
