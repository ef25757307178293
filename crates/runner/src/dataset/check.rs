//! Whether an archive is whole.

use super::partition::{COMPACT, Partition, id_of, month_of};
use super::{Dataset, broken};
use anyhow::Result;
use linerate_report::export::{Group, Rows};
use std::collections::{BTreeMap, BTreeSet};

/// The state of an archive.
#[derive(Debug, Default)]
pub struct Checked {
    pub campaigns: usize,
    pub trials: usize,
    pub files: usize,
    /// Everything that is wrong.
    pub faults: Vec<String>,
    /// Files that are being written, or whose writers were killed. No reader sees them.
    pub drafts: Vec<String>,
}

/// The files of a month, by table.
type Files = BTreeMap<Rows, Vec<String>>;

/// The part of a month that belongs to a campaign.
#[derive(Default)]
struct Campaign {
    /// The tables that have it.
    tables: BTreeSet<Rows>,
    /// Trials of each cell: by the table of cells, and by that of trials.
    cells: BTreeMap<i64, [usize; 2]>,
    /// The cells, and the trials, that are there.
    seen: [BTreeSet<i64>; 2],
}

impl Dataset {
    /// Reads everything, and says what does not agree.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn check(&self) -> Result<Checked> {
        // A writer that replaces rows or compacts a month holds it alone.
        let _held = self.folder.lock(false)?;
        let mut found = Checked {
            drafts: self.folder.drafts()?,
            ..Checked::default()
        };
        let (places, strangers) = self.places()?;
        let no_part = |path| format!("{path} does not belong to an archive");
        found.faults.extend(strangers.into_iter().map(no_part));
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (place, files) in places {
            let month = self.month(&place, &files, &mut found);
            for (id, campaign) in month {
                found.campaigns += 1;
                campaign.judge(&id, &place, &mut found.faults);
                if let Some(other) = all.insert(id.clone(), place.path()) {
                    let faults = &mut found.faults;
                    faults.push(format!(
                        "campaign {id} is in {other} and in {}",
                        place.path()
                    ));
                }
            }
        }
        Ok(found)
    }

    /// The months with their files, and what else is there.
    pub(super) fn places(&self) -> Result<(BTreeMap<Partition, Files>, Vec<String>)> {
        let mut places: BTreeMap<Partition, Files> = BTreeMap::new();
        let mut strangers = Vec::new();
        for (rows, table) in Rows::ALL {
            let mut folders = vec![String::new()];
            for _ in 0..3 {
                let mut below = Vec::new();
                for folder in folders {
                    for (name, is_folder) in self.folder.list(&format!("{table}/{folder}"))? {
                        if is_folder {
                            below.push(format!("{folder}{name}/"));
                        } else {
                            strangers.push(format!("{table}/{folder}{name}"));
                        }
                    }
                }
                folders = below;
            }
            for folder in folders {
                let path = folder.trim_end_matches('/');
                let Some(place) = Partition::of_path(path) else {
                    strangers.push(format!("{table}/{folder}"));
                    continue;
                };
                let files = places.entry(place).or_default().entry(rows).or_default();
                for (name, is_folder) in self.folder.list(&format!("{table}/{path}"))? {
                    if !is_folder && (name == COMPACT || id_of(&name).is_some()) {
                        files.push(name);
                    } else {
                        strangers.push(format!("{table}/{folder}{name}"));
                    }
                }
            }
        }
        Ok((places, strangers))
    }

    /// Reads the files of a month.
    fn month(
        &self,
        place: &Partition,
        files: &Files,
        found: &mut Checked,
    ) -> BTreeMap<String, Campaign> {
        let mut campaigns: BTreeMap<String, Campaign> = BTreeMap::new();
        for (rows, names) in files {
            let mut there: BTreeSet<String> = BTreeSet::new();
            for name in names {
                found.files += 1;
                let path = place.file(*rows, name);
                let mut own = BTreeSet::new();
                let faults = &mut found.faults;
                let read = self.rows(*rows, &path, place, |group| {
                    own.extend(group.ids().map(String::from));
                    if *rows == Rows::Trials {
                        found.trials += group.ids().count();
                    }
                    take(group, *rows, &mut campaigns, faults);
                });
                faults.extend(read.err().map(|why| format!("{why}")));
                if let Some(id) = id_of(name)
                    && own.iter().any(|own| own != id)
                {
                    faults.push(format!("{path} has rows of another campaign"));
                }
                let twice = own.iter().filter(|id| there.contains(*id));
                faults.extend(twice.map(|id| format!("{path}: campaign {id} is in two files")));
                there.append(&mut own);
            }
        }
        campaigns
    }

    /// Reads all rows of a file, and holds them against its place.
    fn rows(
        &self,
        rows: Rows,
        path: &str,
        place: &Partition,
        mut take: impl FnMut(&Group),
    ) -> Result<()> {
        let Some(stored) = self.stored(rows, path)? else {
            return Ok(());
        };
        if stored.lab.as_ref() != Some(&place.lab) {
            let lab = stored.lab.as_deref().unwrap_or("no lab");
            anyhow::bail!("{path} has rows of {lab}");
        }
        for at in 0..stored.groups() {
            let group = stored.group(at).map_err(|fault| broken(path, &fault))?;
            let elsewhere = group
                .wholes("started")
                .position(|ms| ms.and_then(|ms| month_of(ms.div_euclid(1000))) != place.month);
            if let Some(row) = elsewhere {
                anyhow::bail!("{path}: row {row} of row group {at} is of another month");
            }
            take(&group);
        }
        Ok(())
    }
}

/// Counts the rows of a group.
fn take(
    group: &Group,
    rows: Rows,
    campaigns: &mut BTreeMap<String, Campaign>,
    faults: &mut Vec<String>,
) {
    let mut cells = group.wholes("cell");
    let mut numbers = group.wholes(if rows == Rows::Trials {
        "trial"
    } else {
        "trials"
    });
    for id in group.ids() {
        if !campaigns.contains_key(id) {
            campaigns.insert(id.into(), Campaign::default());
        }
        let Some(of) = campaigns.get_mut(id) else {
            continue;
        };
        of.tables.insert(rows);
        let cell = cells.next().flatten().unwrap_or_default();
        let number = numbers.next().flatten().unwrap_or_default();
        let counted = of.cells.entry(cell);
        let is_new = match rows {
            Rows::Facts => continue,
            Rows::Cells => {
                counted.or_default()[0] = number as usize;
                of.seen[0].insert(cell)
            }
            Rows::Trials => {
                counted.or_default()[1] += 1;
                of.seen[1].insert(number)
            }
        };
        if !is_new {
            let which = if rows == Rows::Cells { cell } else { number };
            let what = rows.name().trim_end_matches('s');
            faults.push(format!("campaign {id} has {what} {which} twice"));
        }
    }
}

impl Campaign {
    fn judge(&self, id: &str, place: &Partition, faults: &mut Vec<String>) {
        let place = place.path();
        let lacking = Rows::ALL
            .iter()
            .filter(|(rows, _)| !self.tables.contains(rows));
        let lacking: Vec<&str> = lacking.map(|(_, name)| *name).collect();
        if !lacking.is_empty() {
            faults.push(format!(
                "campaign {id} of {place} has no {}: its writer was killed, or is at work; add it again",
                lacking.join(" and no ")
            ));
            return;
        }
        for (cell, [said, there]) in self.cells.iter().filter(|(_, [said, there])| said != there) {
            faults.push(format!(
                "campaign {id} of {place}: cell {cell} has {there} trials, and its row counts {said}"
            ));
        }
    }
}
