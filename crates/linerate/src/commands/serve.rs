//! `linerate serve`: the pages of campaigns over HTTP, that of a running campaign renewed while it runs.

use super::report;
use crate::http::{Answer, serve};
use crate::prelude::*;
use linerate_report::document::{Link, Table};
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;

/// After so many seconds a browser asks again for the page of a running campaign, and for the list of campaigns.
const AGAIN: u32 = 5;
/// Bytes of a file of a site.
const MOST_BYTES: usize = 64 << 20;

/// Show campaigns in a browser, also while they run.
#[derive(Args)]
#[command(after_help = "Examples:
  linerate serve                                all campaigns below linerate-results
  linerate serve linerate-results/NAME          one campaign
  linerate serve site                           what `linerate site` has written
  ssh -L 2544:localhost:2544 lab linerate serve   from another machine, through ssh

DIR may be empty until the first campaign begins.
Without --allow-network, only this machine can reach the server. Nothing can be changed through the server. Ctrl-C ends it.")]
pub struct Serve {
    /// A campaign, a folder of campaigns, or a site
    #[arg(value_name = "DIR", default_value = "linerate-results")]
    directory: PathBuf,
    /// Address and port; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2544")]
    listen: SocketAddr,
    /// Allow an address that other machines can reach: everyone there can then read the campaigns
    #[arg(long)]
    allow_network: bool,
}

/// Runs the verb.
///
/// # Errors
/// The directory cannot be read, or the address cannot be listened at.
pub fn run(args: &Serve) -> Exit {
    let Serve {
        directory,
        listen,
        allow_network,
    } = args;
    if !listen.ip().is_loopback() {
        if !allow_network {
            bail_usage!(
                "{listen} can be reached by other machines: add --allow-network if they may read the campaigns, or use ssh -L"
            );
        }
        tell(format!(
            "everyone who reaches {listen} can read the campaigns in {}",
            directory.display()
        ));
    }
    let root = directory
        .canonicalize()
        .with_context(|| input::cannot_read("", directory))?;
    let is_site = root.join("index.html").is_file();
    // Campaigns may come later.
    if !is_site && records::find(&root)?.is_empty() {
        tell(format!(
            "{} holds neither campaigns nor a site yet: the page lists campaigns as they come",
            directory.display()
        ));
    }
    let listener = TcpListener::bind(listen).with_context(|| format!("listening at {listen}"))?;
    linerate_runner::interrupt::install();
    let mut out = Output;
    let _ = writeln!(
        out,
        "{} is at http://{}/ until Ctrl-C",
        directory.display(),
        listener.local_addr()?
    );
    let _ = out.flush();
    // One page at a time: their number must not fill the memory.
    let drawing = Mutex::new(());
    serve(&listener, move |path| {
        let _one = drawing.lock();
        let answer = if is_site {
            file(&root, path)
        } else {
            page(&root, path)
        };
        answer.unwrap_or_else(|error| {
            tell(format!("{path}: {}", told(&error)));
            Answer::refused(
                "500 Internal Server Error",
                "this cannot be read: the terminal of linerate says why",
            )
        })
    })?;
    DONE
}

const NOTHING: &str = "404 Not Found";

/// The list of campaigns, or the page of one that is in it.
fn page(root: &Path, path: &str) -> Result<Answer> {
    let wanted = path.trim_matches('/');
    let found = records::find(root)?;
    let name = |folder: &Path| {
        folder
            .strip_prefix(root)
            .unwrap_or(folder)
            .to_string_lossy()
            .into_owned()
    };
    // Nothing but what was found is opened.
    if let Some(folder) = found.iter().find(|folder| name(folder) == wanted) {
        let running = records::is_running(folder);
        let (_, mut page) = report::page(folder)?;
        if running {
            let text = format!("This page refreshes itself every {AGAIN} s.");
            page.above(text, Tone::Note);
        }
        let page = Answer::page(report::drawn(page));
        return Ok(Answer {
            again: running.then_some(AGAIN),
            ..page
        });
    }
    if !wanted.is_empty() {
        return Ok(Answer::refused(NOTHING, "there is no such campaign"));
    }
    let mut listed = Vec::new();
    for folder in &found {
        // A folder that is broken, or was just removed, must not hide the others.
        match records::head(folder) {
            Ok(campaign) => listed.push((name(folder), campaign, state(folder))),
            Err(error) => tell(error),
        }
    }
    listed.sort_by(|(a, one, _), (b, other, _)| (&other.started, b).cmp(&(&one.started, a)));
    Ok(Answer {
        again: Some(AGAIN),
        ..Answer::page(report::drawn(index(&listed)))
    })
}

fn state(folder: &Path) -> &'static str {
    match (records::is_running(folder), records::has_ended(folder)) {
        (true, _) => "running",
        (false, true) => "",
        (false, false) => "did not come to its end",
    }
}

/// A line for each campaign: its path below the folder that is served, its record and its state.
fn index(listed: &[(String, Campaign, &str)]) -> Document {
    let mut page = Document {
        title: Some("Campaigns".into()),
        ..Document::default()
    };
    let title = |c: &Campaign| {
        c.planned
            .as_ref()
            .map_or(c.name.clone(), |plan| plan.experiment.title.clone())
    };
    if listed.is_empty() {
        page.say("No campaign is here yet.");
    }
    page.table(
        Table::of(listed)
            .column("campaign", "", |(path, campaign, _)| {
                Link::new(title(campaign), encoded(path))
            })
            .column("state", "", |(.., state)| *state)
            .column("begun", "UTC", |(_, campaign, _)| {
                campaign.started.replace(['T', 'Z'], " ")
            })
            .column("folder", "", |(path, ..)| path.as_str()),
    );
    page.note("This list and the pages of running campaigns refresh themselves.");
    page
}

/// A path as an address.
fn encoded(path: &str) -> String {
    let byte = |b: u8| match b {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'/' => {
            char::from(b).to_string()
        }
        _ => format!("%{b:02X}"),
    };
    format!("./{}/", path.bytes().map(byte).collect::<String>())
}

/// A file of a site.
fn file(root: &Path, path: &str) -> Result<Answer> {
    let path = path.trim_start_matches('/');
    let name = if path.is_empty() || path.ends_with('/') {
        format!("{path}index.html")
    } else {
        path.into()
    };
    let Ok(body) = files::read_below(root, &name, MOST_BYTES) else {
        return Ok(Answer::refused(NOTHING, "there is no such file"));
    };
    let kind = match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "csv" => "text/csv; charset=utf-8",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    Ok(Answer {
        status: "200 OK",
        kind,
        body,
        again: None,
    })
}
