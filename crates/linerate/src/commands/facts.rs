//! `linerate facts`: how a host is configured, as far as it matters for forwarding.

use crate::prelude::*;
use linerate_hosts::configuration::{Configuration, is_wanted, of_saved};
use linerate_hosts::folder::Folder;
use linerate_linux::files::{read, read_folder};
use linerate_measure::record::{SlotFacts, read_lines};
use linerate_remote::{ExecutionTarget, RemoteError, Target};
use std::fs;

/// Show how a host is configured: CPUs, cards, queues, offloads, sysctls, packet filters, the next boot.
#[derive(Args)]
#[command(after_help = "Examples:
  sudo linerate facts                         this machine
  sudo linerate facts --namespace dut --json  a network namespace, for programs
  linerate facts root@router                  a host over ssh
  linerate facts root@router --save router    save the answers, for example to send them
  linerate facts router                       read them again
  linerate facts freebsd-13.2                 a folder of saved outputs

A folder may be one that --save wrote, or that of a campaign. It may also hold saved outputs, in files named after their \
commands (sysctl-a.txt, ifconfig-a.txt, pfctl-si.txt), or a file system tree (etc/rc.conf, boot/loader.conf, proc/sys, \
sys/class/net). Nothing on a host is changed. It asks for no passwords or keys, and lines of answers that may \
hold one are left out. docs/advise.md lists the commands of each system, with the names of their files.

Exit status: 0 done; 1 the host cannot be read; 2 no such folder, or bad arguments; 130 Ctrl-C.")]
pub struct Facts {
    #[command(flatten)]
    source: Source,

    /// Also write the answers into this new folder
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,

    #[command(flatten)]
    printed: Printed,
}

/// Where facts come from.
#[derive(Debug, Clone, Args)]
pub struct Source {
    /// A host over ssh (with its port: root@192.0.2.1:2222), or an existing folder with facts: settings and hardware of a host, saved by
    /// `linerate facts --save` [default: this machine]
    #[arg(value_name = "HOST|FOLDER")]
    pub place: Option<String>,

    /// Consider this interface only; can be repeated [default: all cards]
    #[arg(long = "interface", value_name = "IFACE")]
    interfaces: Vec<String>,

    /// Network namespace: a name that `ip netns` knows, or a path
    #[arg(long, value_name = "NAME|PATH")]
    pub namespace: Option<String>,

    /// Read the settings of the host with `sudo -n`
    #[arg(long)]
    pub sudo: bool,

    #[command(flatten)]
    ssh: Ssh,
}

/// Bytes of a file of facts.
pub(super) const MOST: usize = 64 << 20;
const FILE: &str = "facts.jsonl";

impl Source {
    /// Name of the source in messages.
    pub fn name(&self) -> &str {
        self.place
            .as_deref()
            .or(self.namespace.as_deref())
            .unwrap_or("this machine")
    }

    /// The host that the same arguments mean in another place: over ssh, else here or in the namespace.
    pub fn elsewhere(&self, place: Option<String>) -> Source {
        Source {
            place,
            ..self.clone()
        }
    }

    /// The DUT of a lab, with its interfaces.
    pub fn of_dut(self, namespace: Option<String>, sudo: bool, ends: &[String; 2]) -> Source {
        Source {
            namespace,
            sudo: self.sudo || sudo,
            interfaces: ends.to_vec(),
            ..self
        }
    }

    /// Refuses two places.
    fn check(&self) -> Result<()> {
        if let (Some(place), Some(_)) = (&self.place, &self.namespace) {
            bail_usage!("{place} cannot be used with --namespace, which is on this machine");
        }
        Ok(())
    }

    /// The facts; `None` after Ctrl-C.
    ///
    /// # Errors
    /// The host, the folder or an interface is not there, or has no facts.
    pub fn facts(&self) -> Result<Option<SlotFacts>> {
        self.check()?;
        if let Some(place) = self
            .place
            .as_deref()
            .filter(|place| Path::new(place).exists())
        {
            return saved(Path::new(place), &self.interfaces).map(Some);
        }
        if self.place.as_deref().is_some_and(is_path) {
            return Err(usage(format!("there is no folder {}", self.name())));
        }
        interrupt::install();
        let progress = Progress::of_files();
        progress.say(format!("asking {}", self.name()));
        let stop = Some(&interrupt::INTERRUPTED);
        let reached = self.target().map_err(|error| match &self.place {
            Some(_) if error.is::<RemoteError>() => anyhow!(
                "{}; or save the router's outputs into a folder: linerate facts --help",
                told(&error)
            ),
            _ => error,
        });
        let asked = reached.and_then(|target| {
            Ok(linerate_remote::facts(
                &target,
                self.sudo,
                &self.interfaces,
                stop,
            )?)
        });
        drop(progress);
        match asked {
            _ if interrupted() => Ok(None),
            asked => asked.map(Some).map_err(|error| match &self.place {
                Some(place) if !place.contains('@') => error.context(format!(
                    "there is no folder {place}, and as a host it gives no facts"
                )),
                _ => error,
            }),
        }
    }

    /// The host, connected.
    ///
    /// # Errors
    /// The host cannot be reached, or a folder is named.
    pub fn target(&self) -> Result<ExecutionTarget> {
        self.check()?;
        if self
            .place
            .as_deref()
            .is_some_and(|place| is_path(place) || Path::new(place).exists())
        {
            return Err(usage(format!("{} is a path: name a host", self.name())));
        }
        let stop = Some(&interrupt::INTERRUPTED);
        Ok(match (&self.place, &self.namespace) {
            (Some(host), _) => ExecutionTarget::connect(&self.ssh.target(host)?, stop)?,
            (None, Some(name)) => ExecutionTarget::connect(
                &Target {
                    namespace: true,
                    ..Target::new(name)
                },
                stop,
            )?,
            (None, None) => ExecutionTarget::Here {
                name: self.name().into(),
                netns: None,
            },
        })
    }
}

/// Whether a place can be no host.
fn is_path(place: &str) -> bool {
    place.contains('/') && !place.starts_with("ssh://")
}

fn saved(place: &Path, wanted: &[String]) -> Result<SlotFacts> {
    let name = place.display();
    let lines = if place.is_dir() {
        place.join(FILE)
    } else {
        place.to_owned()
    };
    let mut facts = if lines.is_file() {
        let text = read(&lines, MOST).with_context(|| input::cannot_read("", &lines))?;
        let read = read_lines::<SlotFacts>(
            &lines.display().to_string(),
            &String::from_utf8_lossy(&text),
        )?;
        for broken in &read.broken {
            tell(format!("a line is left out: {broken}"));
        }
        let all = read.documents;
        if all.len() > 1 {
            tell(format!(
                "{name} has the facts of {} DUTs: those of the first are shown",
                all.len()
            ));
        }
        all.into_iter()
            .next()
            .with_context(|| format!("{name} has no facts: its DUT was not asked"))?
    } else {
        let folder = read_folder(place)?;
        let all = of_folders(&folder);
        let own = all.get("").cloned().unwrap_or_default();
        of_saved(&own).map_err(|why| anyhow!("{name}: {why}{}", below(&all)))?
    };
    if let Some(missing) = wanted.iter().find(|name| !facts.interfaces.contains(name)) {
        return Err(usage(format!(
            "{name} has no interface {missing}; it has {}",
            facts.interfaces.join(", ")
        )));
    }
    facts
        .interfaces
        .retain(|name| wanted.is_empty() || wanted.contains(name));
    Ok(facts)
}

/// Whether a name is that of a folder of saved outputs, and not of a campaign.
pub fn is_saved(what: &str) -> bool {
    let place = Path::new(what);
    if !place.is_dir() || place.join("campaign.json").exists() {
        return false;
    }
    read_folder(place).is_ok_and(|folder| {
        let own = of_folders(&folder).remove("");
        own.is_some_and(|files| of_saved(&files).is_ok())
    })
}

/// Texts of files by their paths.
type Texts = BTreeMap<String, String>;

/// The files of use for facts of the folder (`""`), and of each of its subfolders as a folder.
fn of_folders(folder: &Folder) -> BTreeMap<&str, Texts> {
    let mut all: BTreeMap<&str, Texts> = BTreeMap::new();
    for file in &folder.files {
        let below = file.path.split_once('/');
        for (of, path) in below.into_iter().chain([("", file.path.as_str())]) {
            if is_wanted(path) {
                let text = String::from_utf8_lossy(&file.bytes).into_owned();
                all.entry(of).or_default().insert(path.into(), text);
            }
        }
    }
    all
}

/// The subfolders that show a system, as the end of a sentence.
fn below(all: &BTreeMap<&str, Texts>) -> String {
    let shows = |(of, files): (&&str, &Texts)| {
        (!of.is_empty() && of_saved(files).is_ok()).then(|| of.to_string())
    };
    let names: Vec<String> = all.iter().filter_map(shows).collect();
    match names.len() {
        0 => String::new(),
        1 => format!("; its subfolder {} has such files", names[0]),
        all => format!(
            "; its subfolders {}{} have such files",
            names.iter().take(4).joined(", "),
            when(all > 4, ", ...")
        ),
    }
}

/// The configuration that the facts describe.
///
/// # Errors
/// Their system is not known here.
pub fn configuration(facts: &SlotFacts) -> Result<Configuration> {
    Configuration::recorded(facts).with_context(|| {
        format!(
            "the facts are of a system that is not known here: {}",
            facts.kernel
        )
    })
}

/// Runs the verb.
///
/// # Errors
/// The host or the folder cannot be read, or the facts cannot be saved.
pub fn run(args: &Facts) -> Exit {
    let Some(facts) = args.source.facts()? else {
        return exit(INTERRUPTED);
    };
    if let Some(folder) = &args.save {
        save(folder, &facts)
            .with_context(|| format!("cannot save the facts in {}", folder.display()))?;
        tell(format!("saved: linerate facts {}", folder.display()));
    }
    let (name, found) = (args.source.name(), configuration(&facts)?);
    result(
        &args.printed,
        || json!({ "of": name, "configuration": &found }),
        || pages::facts(name, &found),
    )
}

fn save(folder: &Path, facts: &SlotFacts) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(folder.join(FILE))?;
    file.write_all((serde_json::to_string(facts)? + "\n").as_bytes())?;
    Ok(())
}
