//! What people are shown of changes.

use super::*;
use linerate_core::plan::settings::{Image, Settings, System};
use linerate_core::reconfigure::{self, Port, Target};

#[test]
fn programs_are_shown_without_our_scripts() {
    let steps = Program::new(["sh", "-c", "long\nscript", "linerate", "/etc/pf.conf"]);
    assert_eq!(shown(&steps), "a script of linerate with /etc/pf.conf");
    assert_eq!(shown(&Program::new(["sysctl", "a=1\u{7}"])), "sysctl a=1?");
}

/// An installation of this file by this line, in a folder of its own.
fn installation(file: &Path, line: &str) -> (Changes, Step) {
    let image = Image { file: file.display().to_string(), install: line.into(), undo: "true".into() };
    let settings = Settings { image: Some(image), ..Settings::default() };
    let port = || Port { name: "in0".into(), addresses: Vec::new(), next_hops: Vec::new() };
    let target = Target { system: System::Linux, inside: port(), outside: port(), config_save: None };
    let steps = reconfigure::steps(&settings, None, &target).unwrap();
    let place = Arc::new(Place::Here { name: "here".into(), netns: None });
    let changes = Changes::open(place, "here", None, &file.with_extension("journal"), false).unwrap();
    (changes, steps.steps[0].clone())
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("linerate-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn an_image_arrives_whole() {
    let folder = folder("image");
    let (file, to) = (folder.join("image"), folder.join("installed"));
    let bytes: Vec<u8> = (0..3_000_001u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let (mut changes, step) = installation(&file, &format!("cat >'{}'", to.display()));
    changes.make(&[step], true, None).unwrap();
    assert!(std::fs::read(&to).unwrap() == bytes);
    assert_eq!(changes.undo().unwrap().what, [format!("image {}", file.display())]);
    drop(changes);
    // Its own words, although it reads no more.
    let (mut changes, step) = installation(&file, "echo no room >&2; exit 3");
    let error = changes.make(&[step], true, None).unwrap_err().to_string();
    assert!(error.contains("ended with status 3 (no room)"), "{error}");
    drop(changes);
    std::fs::remove_file(&file).unwrap();
    let (mut changes, step) = installation(&file, "cat");
    let error = changes.make(&[step], true, None).unwrap_err().to_string();
    assert!(error.contains("to be installed on here, cannot be read: No such file"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn nothing_installs_half_of_an_image() {
    let folder = folder("half");
    let whole = folder.join("whole");
    let (changes, step) = installation(&folder.join("image"), &format!("cat && : >'{}'", whole.display()));
    let command = format!("exec {}", words::line(&step.apply.argv, false));
    let run = |input: &str| fed(&changes.place, &Order::new(&command), &mut input.as_bytes(), None).unwrap();
    for cut in ["9\nhalf", "3\nlonger", "", "9"] {
        assert!(!run(cut).is_success() && !whole.exists(), "{cut}");
    }
    assert!(run("4\nhalf").is_success() && whole.exists());
    drop(changes);
    std::fs::remove_dir_all(&folder).unwrap();
}
