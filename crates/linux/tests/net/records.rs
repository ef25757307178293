//! The records of labs, and what they clear away after a process that died.

use linerate_linux::net::Netns;
use linerate_linux::net::registry::{LabRecord, NamespaceRecord, Registry};
use linerate_linux::process::Owner;
use std::fs;
use std::process::Command;

#[test]
fn a_lab_record_is_written_listed_and_removed() {
    let root = std::env::temp_dir().join(format!("linerate-registry-{}", std::process::id()));
    let registry = Registry::at(&root);
    assert!(registry.list().unwrap().records.is_empty());
    let mut record = LabRecord::begin("lab-1", 1_700_000_000);
    registry.write(&record).unwrap();
    assert!(
        registry.clear_remains().unwrap().is_empty(),
        "its process runs"
    );
    record.complete = true;
    registry.write(&record).unwrap();
    fs::write(root.join("labs/bad.json"), "{").unwrap();
    fs::write(
        root.join("labs/new.json"),
        fs::read_to_string(root.join("labs/lab-1.json")).unwrap(),
    )
    .unwrap();
    let listing = registry.list().unwrap();
    assert_eq!(
        (listing.records, listing.damaged.len()),
        (vec![record.clone()], 2)
    );
    registry.take_down(&record).unwrap();
    registry.take_down(&record).unwrap();
    assert!(registry.list().unwrap().records.is_empty());
    fs::remove_dir_all(root).unwrap();
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn remains_of_a_dead_process_are_cleared_and_nothing_else() {
    let root = std::env::temp_dir().join(format!("linerate-remains-{}", std::process::id()));
    let registry = Registry::at(&root);
    let mut child = Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let (ours, foreign) = (Netns::anonymous().unwrap(), Netns::anonymous().unwrap());
    let mut record = LabRecord {
        owner: Owner {
            pid: dead,
            ..Owner::this()
        },
        ..LabRecord::begin("half", 1)
    };
    for (role, ns, inode) in [("dut", &ours, ours.inode()), ("other", &foreign, 1)] {
        let name = format!("linerate-remains-{}-{role}", std::process::id());
        ns.persist(&name).unwrap();
        record
            .namespaces
            .insert(role.into(), NamespaceRecord { name, inode });
    }
    registry.write(&record).unwrap();
    registry
        .write(&LabRecord {
            complete: true,
            name: "whole".into(),
            namespaces: Default::default(),
            ..record.clone()
        })
        .unwrap();
    let cleared = registry.clear_remains().unwrap();
    let left = Netns::open(&record.namespaces["other"].name);
    Netns::remove_persistent(&record.namespaces["other"].name).unwrap();
    assert_eq!(cleared, ["half"]);
    assert!(
        Netns::open(&record.namespaces["dut"].name)
            .unwrap_err()
            .is_missing()
    );
    assert_eq!(left.unwrap(), foreign);
    assert_eq!(registry.list().unwrap().records.len(), 1);
    fs::remove_dir_all(root).unwrap();
}
