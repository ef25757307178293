//! On a terminal: its width, and no escapes where it knows none.

use crate::common::{Program, Scratch};

/// The output of a simulated campaign on a terminal with these settings.
fn on_terminal(setup: &str) -> String {
    let scratch = Scratch::new();
    let bin = env!("CARGO_BIN_EXE_linerate");
    let bench = "bench --simulate loss=7 --family 4 --trials 2 --duration 20ms --out records";
    let inner = format!("{setup} {bin} {bench}");
    Program::new("script")
        .args(["-qec", &inner, "/dev/null"])
        .dir(scratch.path())
        .run()
        .ok()
        .stdout
}

#[test]
fn the_page_is_as_wide_as_a_narrow_terminal() {
    let sent = on_terminal("stty cols 45; NO_COLOR=1 TERM=dumb");
    // Paths are for copying.
    let lines = sent
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.contains('/'));
    let longest = lines.max_by_key(|line| line.len()).unwrap();
    assert!((30..=45).contains(&longest.len()), "{longest}\n{sent}");
}

#[test]
fn a_dumb_terminal_is_sent_no_escapes() {
    let sent = on_terminal("TERM=dumb");
    assert!(
        sent.contains("SIMULATED") && !sent.contains('\u{1b}'),
        "{sent:?}"
    );
    assert!(on_terminal("TERM=xterm").contains('\u{1b}'));
}
