//! Commands for /bin/sh made of quoted words.

/// A program with its arguments, all of them quoted; by `sudo -n` where that is wanted.
pub fn line<S: AsRef<str>>(argv: &[S], sudo: bool) -> String {
    let sudo = if sudo { &["sudo", "-n", "--"][..] } else { &[] };
    let words = sudo.iter().copied().chain(argv.iter().map(AsRef::as_ref));
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word of the shell (POSIX, 2.2.2): within single quotes nothing is special but the quote itself.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sudo_asks_for_no_password() {
        assert_eq!(line(&["a", "b c"], true), "'sudo' '-n' '--' 'a' 'b c'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_argument_arrives_as_it_is(words in prop::collection::vec("[ -~\n\t\u{e4}]{0,12}", 1..4)) {
            let argv: Vec<String> = ["printf".to_string(), "%s\\0".into()].into_iter().chain(words.clone()).collect();
            let output = std::process::Command::new("/bin/sh").args(["-c", &line(&argv, false)]).output().unwrap();
            let expected: Vec<u8> = words.iter().flat_map(|w| w.bytes().chain([0])).collect();
            prop_assert_eq!(output.stdout, expected);
        }
    }
}
