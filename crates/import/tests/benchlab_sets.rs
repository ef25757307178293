//! bench-lab.sh's configurations with the archive's own configuration sets.

use linerate_hosts::folder::{File, Folder};
use linerate_import::benchlab::{Source, import};
use linerate_measure::experiment::System;
use linerate_plan::Plan;
use linerate_plan::lab::{Lab, OperatingSystem};
use std::path::Path;

/// A configuration for two hosts, in the form that the archive's have.
const TWO: &str = include_str!("../src/benchlab/tests/two.config");

const SETS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/netbenches/AMD_GX-412TC_4Cores/Intel_i210AT/kern.random.harvest.mask/configs"
);

fn files(below: &Path, prefix: &str, found: &mut Vec<File>) {
    let mut entries: Vec<_> = std::fs::read_dir(below)
        .unwrap()
        .map(|e| e.unwrap())
        .collect();
    entries.sort_by_key(|e| e.file_name());
    for entry in entries {
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path(), &format!("{path}/"), found),
            false => found.push(File {
                path,
                bytes: std::fs::read(entry.path()).unwrap(),
                executable: false,
            }),
        }
    }
}

#[test]
fn the_harvest_masks_are_two_variants_of_one_router() {
    let mut source = Source {
        title: "t".into(),
        path: "bench.config".into(),
        config: TWO.into(),
        ..Source::default()
    };
    let mut folder = Folder {
        path: "configs".into(),
        ..Folder::default()
    };
    files(Path::new(SETS), "", &mut folder.files);
    assert_eq!(folder.files.len(), 8);
    source.sets = Some(folder);
    let imported = import(&source).unwrap();
    let lab = Lab::read(imported.lab.as_bytes()).unwrap();
    assert_eq!(lab.placeholders(), Some(("igb1", "igb2")));
    let dut = lab.dut().unwrap();
    assert_eq!(dut.system, Some(OperatingSystem::Bsdrp));
    let outside: Vec<String> = dut
        .outside
        .as_ref()
        .unwrap()
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(outside, ["198.19.0.205/24", "2001:2:0:8000::205/64"]);
    let mac = lab
        .receiver()
        .receive
        .as_ref()
        .unwrap()
        .mac
        .unwrap()
        .to_string();
    assert_eq!(mac, "00:1b:21:c4:95:7b");
    let plan = Plan::read(imported.plans[0].text.as_bytes()).unwrap();
    let campaign = plan.campaign(System::FreeBsd, false).unwrap();
    let variants: Vec<&str> = campaign.cells.iter().map(|c| c.variant.as_str()).collect();
    assert_eq!(variants, ["351", "511-default"]);
    assert_eq!(campaign.cells[0].baseline, Some(1));
    let lane = |cell: usize| &campaign.lanes[campaign.cells[cell].lane].settings;
    assert_eq!(lane(0).sysctls, lane(1).sysctls);
    assert_eq!(
        (
            lane(0).sysctls.len(),
            lane(0).boot.len(),
            lane(0).files.len()
        ),
        (3, 3, 2)
    );
    let rc = |cell: usize| {
        &lane(cell)
            .files
            .iter()
            .find(|f| f.path == "/etc/rc.conf")
            .unwrap()
            .text
    };
    assert!(rc(0).contains("harvest_mask=\"351\"") && !rc(1).contains("harvest_mask"));
}
