//! The revisions of a file in a git tree. Nothing in the tree changes, and nothing is checked out.

use crate::messages::told;
use anyhow::{Context, Result, bail};
use linerate_plan::rules::own::MOST_BYTES;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Digits of a commit's name, unless git needs more.
const DIGITS: &str = "--abbrev-commit";

/// A file in a git tree, which is named relative to the tree's folder.
#[derive(Debug)]
pub struct Tracked {
    pub tree: PathBuf,
    pub file: String,
}

impl Tracked {
    /// The commit before `from..to`, and those of this range that changed the file, the oldest first: `1a2b3c4:fw.nft`. Of merged branches,
    /// the merge alone counts.
    ///
    /// # Errors
    /// There is no git, no such tree, or no such range.
    pub fn revisions(&self, range: &str) -> Result<Vec<String>> {
        let Some((from, to)) = range
            .split_once("..")
            .filter(|(_, to)| !to.starts_with('.'))
        else {
            bail_usage!("--commits {range}: write GOOD..BAD, such as v1.0..HEAD");
        };
        let commit = |name: &str| -> Result<String> {
            let name = if name.is_empty() { "HEAD" } else { name };
            let peeled = format!("{name}^{{commit}}");
            let found = self.git(&["rev-parse", "--verify", "--end-of-options", &peeled]);
            let found = found.with_context(|| format!("--commits {range}: looking for {name}"))?;
            // Nothing but a name that git made goes into the next command.
            Ok(found
                .split_whitespace()
                .next_back()
                .unwrap_or_default()
                .into())
        };
        let (first, last) = (commit(from)?, commit(to)?);
        let between = format!("{first}..{last}");
        let list = ["rev-list", DIGITS, "--reverse", "--first-parent"];
        let changed = self.git(&[&list[..], &[&between, "--", &self.file]].concat())?;
        let first = self.git(&[&list[..1], &[DIGITS, "--max-count=1", &first]].concat())?;
        let commits = first.lines().chain(changed.lines());
        Ok(commits
            .map(|commit| format!("{commit}:{}", self.file))
            .collect())
    }

    /// The text of a revision.
    ///
    /// # Errors
    /// The reason why it has no text.
    pub fn text(&self, revision: &str) -> Result<String, String> {
        let (commit, file) = revision.split_once(':').unwrap_or((revision, &self.file));
        let object = format!("{commit}:./{file}");
        let text = self.git(&["cat-file", "blob", &object]);
        text.map_err(|error| told(&error))
    }

    /// The output of a git command in the tree's folder.
    fn git(&self, args: &[&str]) -> Result<String> {
        let mut child = Command::new("git")
            .args(["--literal-pathspecs", "--no-optional-locks"])
            .args(args)
            .current_dir(&self.tree)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("running git in {}", self.tree.display()))?;
        let mut out = Vec::new();
        let most = MOST_BYTES as u64 + 1;
        let read = child
            .stdout
            .take()
            .map(|pipe| pipe.take(most).read_to_end(&mut out));
        read.transpose().context("reading what git prints")?;
        let ended = child.wait_with_output().context("waiting for git")?;
        if out.len() > MOST_BYTES {
            bail!("git prints more than {MOST_BYTES} bytes");
        }
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr);
            bail!(
                "git: {}",
                said.lines()
                    .next()
                    .unwrap_or("it failed")
                    .trim_start_matches("fatal: ")
            );
        }
        String::from_utf8(out).context("git prints something that is not UTF-8 text")
    }
}
