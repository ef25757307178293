//! Examples of the help texts can be typed.

use crate::common::{Scratch, linerate_line};

#[test]
fn examples_of_the_help_work() {
    let scratch = Scratch::new();
    let help = linerate_line("bench --help").run().ok().stdout
        + &linerate_line("send --help").run().ok().stdout;
    let unprivileged = help
        .lines()
        .map(str::trim)
        .filter(|l| l.starts_with("linerate "))
        .filter_map(|l| {
            let command = l.split("   ").next().unwrap();
            let unprivileged = command.contains("--simulate") || command.contains("--write");
            command.strip_prefix("linerate ").filter(|_| unprivileged)
        });
    let mut ran = 0;
    for line in unprivileged {
        let bounded = if line.starts_with("bench") {
            format!("{line} --trials 1")
        } else {
            line.into()
        };
        linerate_line(&bounded).dir(scratch.path()).run().ok();
        ran += 1;
    }
    assert_eq!(ran, 2, "{help}");
}

#[test]
fn examples_of_calculators_work() {
    let mut ran = 0;
    let all = linerate_line("calc --help").run().ok().stdout;
    let (_, commands) = all.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    // The lines of a long description are further right.
    for line in commands.filter(|line| !line.starts_with("   ") && !line.contains(" help ")) {
        let name = line.split_whitespace().next().unwrap();
        let help = linerate_line(&format!("calc {name} --help")).run().ok();
        for line in help.stdout.lines().map(str::trim) {
            // The first words, before what the example is for; a word in quotes has a blank.
            let command = line.strip_prefix("linerate ").unwrap_or_default();
            let command = command.split("   ").next().unwrap();
            if command.starts_with("calc ") && !command.contains('\'') {
                linerate_line(command).run().ok();
                ran += 1;
            }
        }
    }
    assert!(ran > 20, "{ran}");
}
