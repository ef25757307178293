//! The blocks of ministat.

use super::WIDE;
use crate::document::{Block, Document};
use crate::pages::results::ministat_blocks;
use linerate_stats::ministat::{Dataset, MAX_SETS};

/// The lines of each block for so many sets, and all that is said.
fn blocks(sets: u32) -> (Vec<Vec<String>>, String) {
    let set = |n: u32| {
        let runs = [0, 1, 2].map(|run| f64::from(1000 * n + run));
        Dataset::new(format!("set{n:02}"), runs.to_vec())
    };
    let mut page = Document::default();
    ministat_blocks(&mut page, "", &(1..=sets).map(set).collect::<Vec<_>>());
    let mut blocks = vec![Vec::new()];
    for block in &page.blocks {
        match block {
            Block::Code { line, .. } => blocks.last_mut().unwrap().push(line.clone()),
            Block::Gap => blocks.push(Vec::new()),
            _ => {}
        }
    }
    (blocks, page.text(WIDE))
}

#[test]
fn no_set_is_left_out_of_ministats_blocks() {
    for (sets, wanted) in [(1, 1), (7, 1), (8, 2), (13, 2), (14, 3), (60, 10)] {
        let (blocks, text) = blocks(sets);
        assert_eq!(blocks.len(), wanted, "{sets} sets");
        for set in 1..=sets {
            let name = format!("set{set:02}");
            let legend = |line: &String| line.ends_with(&format!(" {name}"));
            let of = blocks.iter().filter(|lines| lines.iter().any(legend));
            let all = if set == 1 { wanted } else { 1 };
            assert_eq!(of.count(), all, "{name} of {sets}:\n{text}");
        }
        let several = format!("these {sets} are in several blocks. Each compares with set01.");
        assert_eq!(text.contains(&several), sets > MAX_SETS as u32, "{text}");
    }
    assert_eq!(blocks(0).1, "");
}
