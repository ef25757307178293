//! `linerate flame`: profiles of any host as flame graphs, folded stacks, or tables of functions.

use super::compare::{OpenCampaign, split};
use crate::output::output_is_closed;
use crate::prelude::*;
use linerate_profile::{
    Folded, Picture, Profile, Source, differences, differential, flame_graph, fold,
};
use std::fs;

/// Draw profiles of pmcstat, DTrace and perf as flame graphs, or list their functions.
#[derive(Args)]
#[command(mut_arg("format", |arg| arg.hide_default_value(true).help("List all functions in this format instead (as text: --top): json has all data, csv the tables; the others are for reading [default: a flame graph, SVG]")))]
#[command(after_help = "Examples:
  pmcstat -R pmc.out -z16 -G pmc.graph                    (on FreeBSD, after pmcstat -S cpu_clk_unhalted.thread -O pmc.out)
  linerate flame pmc.graph > pmc.svg                      a flame graph for any browser
  linerate flame --top 10 pmc.graph                       the ten functions with the most samples, and their callers
  linerate flame --folded pmc.graph > pmc.stack           folded stacks, as stackcollapse-pmc.pl prints them
  perf script | linerate flame - -o linux.svg             a profile of Linux
  linerate flame before.graph after.graph -o change.svg   red functions grew, blue ones fell
  linerate flame --top 10 before.graph after.graph        the functions whose share changed most
  linerate flame X:forwarding X:nft-stateful -o cost.svg  two variants of a campaign that was measured with --profile

Reads call graphs of pmcstat -G, stacks of DTrace's stack(), btrace, bpftrace and
perf script, tables of lockstat, and folded stacks. docs/profiles.md explains them.

Exit status: 0 printed; 1 a file has no stacks; 2 no such file or campaign, or bad arguments.")]
pub struct Flame {
    /// Output of a profiler; - is standard input. Or a campaign with a profile, or CAMPAIGN:VARIANT; a campaign is a folder, last,
    /// last-1, or a name of `linerate list`
    #[arg(value_name = "FILE", default_value = "last", value_parser = stacks)]
    file: PathBuf,

    /// A second profile, to compare with the first
    #[arg(value_name = "AFTER", value_parser = stacks, conflicts_with = "folded")]
    after: Option<PathBuf>,

    /// Print folded stacks instead of a flame graph
    #[arg(long, conflicts_with_all = ["top", "json", "format"])]
    folded: bool,

    /// Print this many functions instead of a flame graph
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "20")]
    top: Option<usize>,

    /// Write the flame graph or the folded stacks to this file, instead of standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "top")]
    out: Option<PathBuf>,

    /// Title of the flame graph [default: the names of the files]
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["folded", "top"])]
    title: Option<String>,

    #[command(flatten)]
    printed: Printed,
}

/// The file of a profile: of a campaign, that of the only cell that is meant and has one.
fn stacks(what: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(what);
    let (campaign, _) = split(what);
    let is_path = campaign.contains(['/', '.']) && !Path::new(campaign).is_dir();
    if is_path || input::is_stdin(&path) || path.exists() && !path.is_dir() {
        return Ok(path);
    }
    let folder = handle::folder(campaign)?;
    let open = OpenCampaign::open(what).map_err(|why| told(&why))?;
    let profiled = open.results().into_iter().filter_map(|slot| {
        let file = format!("profiles/{}.stack", slot.id + 1);
        folder.join(&file).is_file().then_some((slot, file))
    });
    match &profiled.collect::<Vec<_>>()[..] {
        [] => Err(format!("{what} has no profile: measure with --profile")),
        [(_, only)] => Ok(folder.join(only)),
        several @ [.., (last, _)] => {
            let cells = several
                .iter()
                .map(|(slot, file)| format!("{file} is of {}", slot.name));
            Err(format!(
                "{what} has several profiles: choose one by its variant or its number, such as {campaign}:{}; {}",
                last.id + 1,
                cells.joined(", ")
            ))
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// A file cannot be read, or has no stacks; or the picture cannot be written.
pub fn run(args: &Flame) -> Exit {
    if args.folded {
        let told = match &args.out {
            Some(path) => read(&args.file, BufWriter::new(create(path)?))?,
            None => match read(&args.file, BufWriter::new(Output)) {
                // `finish` tells whether that is a failure.
                Err(_) if output_is_closed() => return DONE,
                told => told?,
            },
        };
        warn_of_cut(&args.file, &told);
        return DONE;
    }
    let (before, told) = profile(&args.file)?;
    let after = args.after.as_deref().map(profile).transpose()?;
    if args.top.is_some() || !args.printed.is_text() {
        let most = args.top.unwrap_or(usize::MAX);
        return match &after {
            None => print_functions(&before, told.event.as_deref(), most, &args.printed),
            Some((after, _)) => {
                let changes: Vec<_> = differences(&before, after).into_iter().take(most).collect();
                result(
                    &args.printed,
                    || &changes,
                    || pages::function_changes(&changes),
                )
            }
        };
    }
    draw(
        args,
        &before,
        &told,
        after.as_ref().map(|(profile, _)| profile),
    )
}

fn draw(args: &Flame, before: &Profile, told: &Folded, after: Option<&Profile>) -> Exit {
    if args.out.is_none() && io::stdout().is_terminal() {
        bail!(
            "a flame graph is no text for a terminal: name a file with --out, or list functions with --top"
        );
    }
    let names = args.after.iter().fold(named(&args.file), |first, second| {
        format!(
            "{first} and {}, whose functions are red if they grew",
            named(second)
        )
    });
    let picture = Picture {
        title: args.title.clone().unwrap_or(names),
        subtitle: told.event.clone(),
        unit: if told.source == Source::Lockstat {
            "ns"
        } else {
            "samples"
        }
        .into(),
    };
    let svg = match after {
        Some(after) => differential(before, after, picture),
        None => flame_graph(before, picture),
    };
    let svg = svg.with_context(|| format!("cannot draw {}", input::name(&args.file)))?;
    match &args.out {
        Some(path) => write_picture(path, &svg)?,
        None => print(&String::from_utf8_lossy(&svg)),
    }
    DONE
}

/// The name of a profile in a title: that of its cell and its campaign, or of its file.
fn named(file: &Path) -> String {
    of_cell(file).unwrap_or_else(|| input::name(file))
}

fn of_cell(file: &Path) -> Option<String> {
    let number: usize = file.file_stem()?.to_str()?.parse().ok()?;
    let profiles = file
        .parent()
        .filter(|folder| folder.ends_with("profiles"))?;
    let folder = profiles.parent()?.to_str()?;
    let open = OpenCampaign::open(folder).ok()?;
    let slot = open
        .slots()
        .into_iter()
        .find(|slot| slot.id + 1 == number)?;
    Some(format!("{} ({folder})", slot.name))
}

/// Prints the functions of a profile with most samples.
///
/// # Errors
/// They cannot be written as JSON.
pub fn print_functions(
    profile: &Profile,
    event: Option<&str>,
    most: usize,
    printed: &Printed,
) -> Exit {
    let functions: Vec<_> = profile.functions().into_iter().take(most).collect();
    result(
        printed,
        || &functions,
        || pages::functions(&functions, profile.samples(), event),
    )
}

/// Writes a picture to a file.
///
/// # Errors
/// The file cannot be written.
pub fn write_picture(path: &Path, svg: &[u8]) -> Result<()> {
    create(path)?
        .write_all(svg)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn create(path: &Path) -> Result<fs::File> {
    fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// The profile in a file.
fn profile(path: &Path) -> Result<(Profile, Folded)> {
    let mut text = Vec::new();
    let told = read(path, &mut text)?;
    warn_of_cut(path, &told);
    let profile = Profile::of_folded(&String::from_utf8_lossy(&text));
    if profile.samples() == 0 {
        bail!("{} has stacks without samples", input::name(path));
    }
    Ok((profile, told))
}

/// Folds the stacks of a file.
fn read(path: &Path, output: impl Write) -> Result<Folded> {
    let name = input::name(path);
    fold(input::reader(path)?, output).map_err(|fault| anyhow!("{name}: {fault}"))
}

fn warn_of_cut(path: &Path, told: &Folded) {
    if told.is_cut {
        tell(format_args!(
            "{} ends within a line: its last stack is not whole",
            input::name(path)
        ));
    }
}
