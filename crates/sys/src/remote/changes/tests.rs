//! Words of the shell, given to a real one.

use super::*;
use proptest::prelude::*;

#[test]
fn programs_are_shown_without_our_scripts() {
    let steps = Program::new(["sh", "-c", "long\nscript", "linerate", "/etc/pf.conf"]);
    assert_eq!(shown(&steps), "a script of linerate with /etc/pf.conf");
    assert_eq!(shown(&Program::new(["sysctl", "a=1\u{7}"])), "sysctl a=1?");
    assert_eq!(command(&Program::new(["a", "b c"]), true), "exec 'sudo' '-n' '--' 'a' 'b c'");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_argument_arrives_as_it_is(words in prop::collection::vec("[ -~\n\t\u{e4}]{0,12}", 1..4)) {
        let argv = ["printf".to_string(), "%s\\0".into()].into_iter().chain(words.clone());
        let line = command(&Program::new(argv), false);
        let output = std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
        let expected: Vec<u8> = words.iter().flat_map(|w| w.bytes().chain([0])).collect();
        prop_assert_eq!(output.stdout, expected);
    }
}
