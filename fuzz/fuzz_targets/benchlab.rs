//! bench-lab.sh's configurations with sets and presets: the configuration, byte 1, and then files as `path`, byte 0, content, with
//! byte 1 between them; paths below `c/` are of sets, others are presets. Plans that are made have no faults.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_hosts::folder::{File, Folder};
use linerate_import::benchlab::{Source, import};
use linerate_plan::Plan;
use linerate_plan::lab::Lab;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.split(|b| *b == 1);
    let config = parts.next().unwrap_or_default().to_vec();
    let (mut sets, mut presets) = (Folder::default(), Folder::default());
    for part in parts {
        let mut halves = part.splitn(2, |b| *b == 0);
        let path = String::from_utf8_lossy(halves.next().unwrap_or_default()).into_owned();
        let bytes = halves.next().unwrap_or_default().to_vec();
        let (folder, path) = match path.strip_prefix("c/") {
            Some(path) => (&mut sets, path.to_string()),
            None => (&mut presets, path),
        };
        folder.files.push(File { path, bytes, executable: false });
    }
    let source = Source { config, sets: Some(sets), presets: Some(presets), ..Source::default() };
    let Ok(imported) = import(&source) else { return };
    assert_eq!(Lab::read(imported.lab.as_bytes()).err().unwrap_or_default(), imported.lacking);
    assert!(!imported.plans.is_empty());
    for plan in &imported.plans {
        Plan::read(plan.text.as_bytes()).expect("a plan that was made has no faults");
    }
});
