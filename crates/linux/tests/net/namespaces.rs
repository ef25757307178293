//! Namespaces: made, entered, named, and gone when their process is killed.

use super::{MAC_A, MAC_B, end, until};
use linerate_linux::net::Netns;
use linerate_linux::net::netlink::Route;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
#[ignore = "needs root: run by make test as root"]
fn an_anonymous_namespace_is_new_and_empty() {
    let (here, ns) = (Netns::current().unwrap(), Netns::anonymous().unwrap());
    assert_ne!(here, ns);
    assert_eq!(Netns::current().unwrap(), here);
    assert_eq!(
        ns.enter(|| Netns::current().unwrap().inode()).unwrap(),
        ns.inode()
    );
    let links = Route::open(&ns).unwrap().links().unwrap();
    assert_eq!(
        links
            .iter()
            .map(|link| link.name.as_str())
            .collect::<Vec<_>>(),
        ["lo"]
    );
    assert!(links[0].loopback && !links[0].up);
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_panic_inside_goes_on_in_the_caller() {
    let ns = Netns::anonymous().unwrap();
    let result = std::panic::catch_unwind(|| ns.enter(|| panic!("inside")));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"inside"));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_command_and_a_worker_thread_run_inside() {
    let ns = Netns::anonymous().unwrap();
    let output = ns
        .command("readlink")
        .arg("/proc/self/ns/net")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        format!("net:[{}]", ns.inode())
    );
    let worker = ns.clone();
    let inside = std::thread::spawn(move || {
        worker.current_thread_enter().unwrap();
        Netns::current().unwrap().inode()
    });
    assert_eq!(inside.join().unwrap(), ns.inode());
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_persistent_name_is_made_found_and_removed() {
    let name = format!("linerate-test-{}", std::process::id());
    let ns = Netns::anonymous().unwrap();
    ns.persist(&name).unwrap();
    let found = Netns::open(&name).unwrap();
    let again = ns.persist(&name).unwrap_err();
    Netns::remove_persistent(&name).unwrap();
    assert_eq!(found, ns);
    assert_eq!(
        again.to_string(),
        format!("cannot create /run/netns/{name}: File exists")
    );
    assert!(Netns::open(&name).unwrap_err().is_missing());
}

/// Not a test of its own: run by the next one as the process to be killed.
#[test]
#[ignore = "needs root: run by make test as root"]
fn holder_of_a_namespace() {
    let Ok(path) = std::env::var("LINERATE_TEST_HOLD") else {
        return;
    };
    let (ours, theirs) = (Netns::anonymous().unwrap(), Netns::open(path).unwrap());
    Route::open(&ours)
        .unwrap()
        .create_veth(&end("held", MAC_A), &end("witness", MAC_B), &theirs, 1)
        .unwrap();
    eprintln!("ready {}", ours.inode());
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_killed_process_leaves_nothing_behind() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let ns = Netns::anonymous().unwrap();
    let route = Route::open(&ns).unwrap();
    let before = mounts();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "namespaces::holder_of_a_namespace",
            "--include-ignored",
            "--nocapture",
        ])
        .env(
            "LINERATE_TEST_HOLD",
            format!("/proc/{}/fd/{}", std::process::id(), ns.as_fd().as_raw_fd()),
        )
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ready = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().strip_prefix("ready ").map(str::to_owned));
    let inode: u64 = ready.expect("the child's namespace").parse().unwrap();
    assert!(route.link("witness").is_ok());
    child.kill().unwrap();
    child.wait().unwrap();
    // One end of a veth pair lives only as long as the other: it goes when the dead process's namespace goes.
    until("the end of the namespace", || {
        route.link("witness").is_err()
    });
    let own = |line: &&str| line.contains(&inode.to_string());
    assert_eq!(mounts().lines().find(own), None);
    assert_eq!(before.lines().find(own), None);
    let names = fs::read_dir("/run/netns")
        .map(|names| names.flatten().collect::<Vec<_>>())
        .unwrap_or_default();
    assert!(
        names
            .iter()
            .all(|name| Netns::open(name.path()).map_or(true, |found| found.inode() != inode))
    );
}
