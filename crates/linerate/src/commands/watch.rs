//! `linerate watch`: what a host is doing now, and where its limit is.

use super::facts;
use crate::output::{is_dumb, output_is_closed};
use crate::prelude::*;
use crate::watch::{Shown, Source, draw};
use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use linerate_linux::net::Netns;
use linerate_measure::watch::{Differ, Rates, Sample};
use linerate_remote::Target;
use linerate_report::watch::{Form, lines};
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::BufReader;

/// Watch queues, CPUs and losses of this machine or of a host: how many packets, how many dropped, where is the limit?
#[derive(Args)]
#[command(after_help = "Examples:
  sudo linerate watch                                 a live view of this machine
  sudo linerate watch eth0 eth1 --namespace router    two interfaces of a network namespace
  linerate watch root@router cxl0                     a FreeBSD or Linux host, over ssh
  linerate watch --host r1 --format nic-queue-usage   one line a second: frames of each receive queue, as this script of the BSD Router Project prints them
  linerate watch --format netstat --count 5           totals as netstat -ihw 1 prints them
  linerate watch --json --for 10s | jq .limits        for programs: a JSON object on each line
  linerate watch --record busy.jsonl                  keep all counters, and watch them again:
  linerate watch --replay busy.jsonl

docs/watch.md says which counter each rate comes from.
Without a terminal, or with --format, there is one line for each interval. Only root may read the rules of a firewall.

Exit status: 0 ended; 1 the host or the file cannot be read; 2 bad arguments; 130 Ctrl-C.")]
pub struct Watch {
    /// A host to watch over ssh (a word with @: root@router; without @, use --host), and interfaces [default: all interfaces of this
    /// machine]
    #[arg(value_name = "USER@HOST|IFACE")]
    what: Vec<String>,

    /// Network namespace: a name that `ip netns` knows, or a path
    #[arg(long, value_name = "NAME|PATH", conflicts_with_all = ["host", "replay"])]
    namespace: Option<String>,

    /// Watch a host over ssh: its address, with a port or without (root@192.0.2.1:2222), or its name in your ssh configuration
    #[arg(long, value_name = "USER@HOST", conflicts_with = "replay")]
    host: Option<String>,

    /// Read the counters of the host with `sudo -n`
    #[arg(long)]
    sudo: bool,

    #[command(flatten)]
    ssh: Ssh,

    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval, conflicts_with = "replay")]
    interval: Duration,

    /// End after this long
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// End after this many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Print lines instead of the live view; text prints the first line of the view
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    format: Option<Form>,

    /// Print the rates of each interval as a JSON object on one line
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Write all counters to this file: for each sample, one line with a JSON object
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Show the samples of a file that --record wrote; - is standard input. Without a terminal, linerate shows them without pauses
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

/// The shortest interval: the counters of many drivers are not renewed more often.
const SHORTEST: Duration = Duration::from_millis(10);
/// How often is looked for keys and for the end.
const LOOK: Duration = Duration::from_millis(50);
/// Intervals that the picture of the past has.
const PAST: usize = 60;
/// Most time that a host may be silent: an sshd starves under load.
const SILENCE: Duration = Duration::from_secs(30);

fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < SHORTEST => Err(format!("at least {} ms", SHORTEST.as_millis())),
        interval => Ok(interval),
    }
}

fn form() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(Form::NAMES.map(|(name, _)| name)).map(|name| {
        Form::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(Form::Text, |(_, form)| *form)
    })
}

/// Runs the verb.
///
/// # Errors
/// The host or the file cannot be read.
pub fn run(args: &Watch) -> Exit {
    interrupt::install();
    let on_terminal =
        !args.json && args.format.is_none() && io::stdout().is_terminal() && !is_dumb();
    let (source, name) = source(args, on_terminal)?;
    let record = args.record.as_deref().map(create).transpose()?;
    let stays = on_terminal && args.replay.is_some();
    let differ = Differ::default();
    let mut watching = Watching {
        args,
        source,
        record,
        differ,
        began_ns: None,
        intervals: 0,
        stays,
    };
    if on_terminal {
        let mut view = View::open(Shown {
            name,
            ..Shown::default()
        })?;
        watching.until_end(|rates| view.turn(rates))?;
    } else {
        let form = args.format.unwrap_or(Form::Text);
        let mut nth = 0;
        watching.until_end(|rates| {
            if let Some(rates) = rates {
                if args.json {
                    print(&(serde_json::to_string(&rates)? + "\n"))
                } else {
                    print(&plain(&lines(form, &rates, nth)))
                }
                io::stdout().flush().ok();
                nth += 1;
            }
            Ok(!output_is_closed())
        })?;
    }
    if interrupted() {
        return exit(INTERRUPTED);
    }
    if watching.intervals == 0 && args.replay.is_some() {
        bail!(
            "{name} has fewer than two samples: there are no rates",
            name = watching.name()
        );
    }
    DONE
}

/// Where the samples come from, and its name.
fn source(args: &Watch, on_terminal: bool) -> Result<(Source, String)> {
    // No interface has an @ in its name.
    let (users, wanted): (Vec<String>, Vec<String>) = args
        .what
        .iter()
        .cloned()
        .partition(|what| what.contains('@'));
    if let Some(folder) = wanted.iter().find(|what| facts::is_saved(what)) {
        bail_usage!(
            "{folder} is a folder of saved outputs, which show settings and no load: linerate facts {folder} prints them, linerate advise {folder} recommends settings. linerate watch root@router looks at a router while it is busy"
        );
    }
    let hosts: Vec<&String> = args.host.iter().chain(&users).collect();
    if hosts.len() > 1 || (!users.is_empty() && (args.namespace.is_some() || args.replay.is_some()))
    {
        bail_usage!("one place is watched at a time: a host, a namespace or a record of samples");
    }
    if args.sudo && hosts.is_empty() {
        bail_usage!(
            "--sudo is for a host: name it (linerate watch root@router); here, run linerate by sudo"
        );
    }
    let interfaces = wanted.join(" ");
    let named = |place: &str| format!("{place}  {interfaces}");
    if let Some(path) = &args.replay {
        let file: Box<dyn io::BufRead + Send> = if input::is_stdin(path) {
            Box::new(BufReader::new(io::stdin()))
        } else {
            Box::new(BufReader::new(
                files::open(path).with_context(|| input::cannot_read("", path))?,
            ))
        };
        let name = input::name(path);
        return Ok((
            Source::record(name.clone(), file, wanted, on_terminal),
            named(&name),
        ));
    }
    if let Some(host) = hosts.into_iter().next() {
        let target = Target {
            silence: SILENCE,
            ..args.ssh.target(host)?
        };
        return Ok((
            Source::host(target, args.sudo, wanted, args.interval),
            named(host),
        ));
    }
    let namespace = match &args.namespace {
        Some(name) => Netns::open(name)?,
        None => Netns::current()?,
    };
    let place = args.namespace.as_deref().unwrap_or("this machine");
    Ok((Source::here(namespace, wanted, args.interval), named(place)))
}

fn create(path: &Path) -> Result<(BufWriter<File>, PathBuf)> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((BufWriter::new(file), path.to_owned()))
}

/// Texts of hosts and files must not control the terminal.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { '?' } else { c })
        .collect()
}

struct Watching<'a> {
    args: &'a Watch,
    source: Source,
    record: Option<(BufWriter<File>, PathBuf)>,
    differ: Differ,
    began_ns: Option<u64>,
    intervals: u64,
    /// Whether the view stays when there are no more samples.
    stays: bool,
}

impl Watching<'_> {
    fn name(&self) -> String {
        self.args
            .replay
            .as_deref()
            .map(input::name)
            .unwrap_or_default()
    }

    /// Takes samples until the end. `turn` gets the rates, or nothing while there are none, and says whether to go on.
    fn until_end(&mut self, mut turn: impl FnMut(Option<Rates>) -> Result<bool>) -> Result<()> {
        while !interrupted() {
            let sample = match self.source.next(LOOK) {
                Ok(sample) => sample,
                // The end of a record stays on the screen until a key ends it.
                Err(None) if self.stays && self.intervals > 0 => {
                    std::thread::sleep(LOOK);
                    None
                }
                Err(None) => break,
                Err(Some(error)) => return Err(error),
            };
            let (mut over, mut rates) = (false, None);
            if let Some(sample) = sample {
                self.keep(&sample)?;
                let (at_ns, began_ns) = (sample.at_ns, *self.began_ns.get_or_insert(sample.at_ns));
                rates = self.differ.take(sample);
                self.intervals += u64::from(rates.is_some());
                let took = Duration::from_nanos(at_ns.saturating_sub(began_ns));
                over = self.args.duration.is_some_and(|longest| took >= longest)
                    || self.args.count.is_some_and(|most| self.intervals >= most);
            }
            if !turn(rates)? || over {
                break;
            }
        }
        Ok(())
    }

    fn keep(&mut self, sample: &Sample) -> Result<()> {
        let Some((file, path)) = &mut self.record else {
            return Ok(());
        };
        let line = serde_json::to_string(sample)? + "\n";
        let written = file.write_all(line.as_bytes()).and_then(|()| file.flush());
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The terminal, which is as it was when this is dropped, and after a panic.
struct View {
    terminal: DefaultTerminal,
    shown: Shown,
}

impl View {
    fn open(shown: Shown) -> Result<View> {
        let terminal = ratatui::try_init().context("cannot draw on this terminal")?;
        let mut view = View { terminal, shown };
        view.draw()?;
        Ok(view)
    }

    fn draw(&mut self) -> Result<()> {
        let drawn = self.terminal.draw(|frame| draw(frame, &self.shown));
        drawn.map(drop).context("cannot draw on this terminal")
    }

    /// Shows rates, if there are new ones, and obeys keys. Whether to go on.
    fn turn(&mut self, rates: Option<Rates>) -> Result<bool> {
        let mut changed = false;
        if let Some(rates) = rates {
            if self.shown.history.len() == PAST {
                self.shown.history.pop_front();
            }
            self.shown.history.push_back(rates.total.rx.pps);
            if !self.shown.paused || self.shown.rates.is_none() {
                self.shown.rates = Some(rates);
                changed = true;
            }
        }
        while !hung_up() && event::poll(Duration::ZERO)? {
            changed = true;
            if let Event::Key(key) = event::read()?
                && key.is_press()
            {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('c') if control => {
                        interrupt::INTERRUPTED.store(true, std::sync::atomic::Ordering::Relaxed);
                        return Ok(false);
                    }
                    _ if control => {}
                    KeyCode::Char('q') => return Ok(false),
                    KeyCode::Esc if !self.shown.help => return Ok(false),
                    KeyCode::Char(' ' | 'p') => self.shown.paused = !self.shown.paused,
                    KeyCode::Char('s') => self.shown.by_rate = !self.shown.by_rate,
                    KeyCode::Tab | KeyCode::Char('n') => self.shown.next_interface(),
                    KeyCode::Char('b') => self.shown.interface = None,
                    KeyCode::Char('?' | 'h') => self.shown.help = !self.shown.help,
                    _ => self.shown.help = false,
                }
            }
        }
        if changed {
            self.draw()?;
        }
        Ok(!hung_up())
    }
}

/// Exit status of a program whose terminal is gone, as shells have it (128 + SIGHUP).
const HANGUP: i32 = 129;

/// Whether the terminal is gone. crossterm would read its end again and again, and never return.
fn hung_up() -> bool {
    let stdin = rustix::stdio::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let found = poll(&mut polled, Some(&Timespec::default()));
    found.is_ok()
        && polled[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR)
}

impl Drop for View {
    fn drop(&mut self) {
        if hung_up() {
            // ratatui would panic because it can tell nobody. Records are flushed after each sample.
            std::process::exit(HANGUP);
        }
        ratatui::restore();
    }
}
