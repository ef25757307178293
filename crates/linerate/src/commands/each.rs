//! One campaign after the other, of folders of records and of trees of other tools.

use super::report;
use crate::prelude::*;
use linerate_import::netbenches::records::{
    Records as NetbenchesRecords, records as imported_records,
};
use linerate_report::pages::Records;
use linerate_runner::archive::visit;

/// Takes the records of the campaigns at or below these directories, or of a tree of results of other tools, one after the other,
/// each with its folder below the directory, or its path where there are several directories. One that cannot be read is left out and
/// told: then the exit status is that of a failure.
///
/// # Errors
/// A directory holds no campaign, none can be read, or `take` fails.
pub fn each(
    directories: &[PathBuf],
    mut take: impl FnMut(&str, &Records<'_>) -> Result<()>,
) -> Exit {
    let stacks = &BTreeMap::new();
    let alone = directories.len() == 1;
    let mut code = ExitCode::SUCCESS;
    let mut taken = 0;
    for directory in directories {
        let campaigns = records::find(directory)?;
        for path in &campaigns {
            let stored = match output::stored(path) {
                Ok(stored) => stored,
                Err(error) => {
                    tell(format!("left out: {error}"));
                    code = ExitCode::from(FAILED);
                    continue;
                }
            };
            if !stored.missing.is_empty() {
                code = ExitCode::from(FAILED);
            }
            taken += 1;
            let below = path
                .strip_prefix(directory)
                .ok()
                .filter(|below| below.components().next().is_some());
            let below = below.filter(|_| alone).unwrap_or(path);
            let StoredCampaign {
                campaign,
                host,
                trials,
                facts,
                ..
            } = &stored;
            let summary = &report::summary_of(&stored);
            take(
                &below.to_string_lossy(),
                &Records {
                    campaign,
                    host,
                    summary,
                    trials,
                    facts,
                    stacks,
                },
            )?;
        }
        if campaigns.is_empty() {
            let imported = each_imported(directory, alone, &mut take)?;
            if imported == 0 {
                bail!("{} holds no campaign", directory.display());
            }
            taken += imported;
        }
    }
    if taken == 0 && code != ExitCode::SUCCESS {
        bail!("no campaign can be read");
    }
    Ok(code)
}

/// Takes the results of other tools at or below a directory, and returns how many there are. `alone`: no other directory is asked for.
fn each_imported(
    directory: &Path,
    alone: bool,
    take: &mut impl FnMut(&str, &Records<'_>) -> Result<()>,
) -> Result<usize> {
    let mut taken = 0;
    let mut tables_alone = Vec::new();
    let archive = visit(directory, false, &mut |_| {}, |found| {
        let folder = if alone {
            found.path.clone()
        } else {
            directory.join(&found.path).display().to_string()
        };
        let Some(NetbenchesRecords {
            campaign,
            host,
            trials,
        }) = imported_records(found, env!("CARGO_PKG_VERSION"))
        else {
            tables_alone.push(folder);
            return Ok(());
        };
        taken += 1;
        let summary = &summarise(&campaign, &trials, Stopped::Trials, 0);
        let (campaign, host, trials) = (&campaign, &host, &trials[..]);
        take(
            &folder,
            &Records {
                campaign,
                host,
                summary,
                trials,
                facts: &[],
                stacks: &BTreeMap::new(),
            },
        )
    })?;
    if !tables_alone.is_empty() {
        tell(format!(
            "folders left out, because they have tables of results and no runs: {}",
            tables_alone.join(", ")
        ));
    }
    if !archive.problems.is_empty() {
        tell(format!(
            "problems in {directory}: {}; `linerate import netbenches {directory}` lists them",
            archive.problems.len(),
            directory = directory.display()
        ));
    }
    Ok(taken)
}
