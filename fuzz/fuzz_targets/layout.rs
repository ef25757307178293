//! Whole results folders: `path`, byte 0, content, with byte 1 between files, become sets, JSON and records.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_import::netbenches::assemble::Assembly;
use linerate_import::netbenches::config::Configs;
use linerate_import::netbenches::layout::{Kind, kind, place};
use linerate_import::netbenches::records::records;

fuzz_target!(|bytes: &[u8]| {
    let mut configs = Configs::default();
    let mut assembly: Option<Assembly> = None;
    for file in bytes.split(|b| *b == 1) {
        let mut parts = file.splitn(2, |b| *b == 0);
        let path = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let content = parts.next().unwrap_or_default();
        let folders: Vec<&str> = path.split('/').collect();
        let assembly = assembly.get_or_insert_with(|| Assembly::new(".", place(&folders), true));
        match kind(&path) {
            Kind::Config => drop(configs.file(&path, content)),
            kind => drop(assembly.file(&path, kind, content)),
        }
    }
    let Some((Some(directory), _)) = assembly.map(|a| a.finish(&configs)) else { return };
    for set in &directory.sets {
        assert_eq!(set.slot.agrees == Some(true), set.slot.rule.is_some());
        assert_eq!(set.slot.agrees == Some(false), set.slot.disagreement.is_some());
    }
    records(directory, "0");
});
