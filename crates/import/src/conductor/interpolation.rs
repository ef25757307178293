//! `%(name)s` in values, as ConfigParser's BasicInterpolation has it: `%%` is a percent sign, `%(name)s` the value of another key of the
//! section or of `[DEFAULT]`.
//!
//! A lone `%`, over which ConfigParser stumbles, is left as it is: commands such as `date +%s` mean it.

use super::ini::Section;
use linerate_plan::Diagnostic;

/// Values within values (ConfigParser's own limit).
const MOST_DEPTH: u32 = 10;
/// Most bytes of a value: a host gets the value at once, together with the shell that supervises it. The longest published one
/// has 270.
const MOST_VALUE: usize = 48 << 10;

/// Bytes that a value takes beside its text, and that a reference to it costs.
const EACH: usize = 64;

/// Most bytes of all files and values of a test: a main file of some lines could name a large file a thousand times, and a few lines
/// that refer to each other could take any time and memory.
pub(super) const BUDGET: usize = 32 << 20;

/// Takes bytes from what is left of a budget; returns whether there was enough.
pub(super) fn spend(budget: &mut usize, bytes: usize) -> bool {
    let left = budget.checked_sub(bytes);
    *budget = left.unwrap_or(0);
    left.is_some()
}

/// Replaces the references in `value`.
pub(super) fn expand(
    value: &str,
    section: &Section,
    defaults: &Section,
    budget: &mut usize,
) -> Result<String, Diagnostic> {
    let mut expansion = Expansion {
        section,
        defaults,
        budget,
        out: String::new(),
    };
    expansion.append(value, 1)?;
    let fits = spend(expansion.budget, EACH + expansion.out.len());
    if fits { Ok(expansion.out) } else { Err(much()) }
}

fn open() -> Diagnostic {
    let message = "%( begins the name of another key, and does not end in )s";
    Diagnostic::new(message).remedy("write %%( for a mere %(")
}

fn much() -> Diagnostic {
    Diagnostic::new("the test's commands are too long together")
        .remedy("put them into scripts on the hosts")
}

struct Expansion<'a> {
    section: &'a Section,
    defaults: &'a Section,
    budget: &'a mut usize,
    out: String,
}

impl<'a> Expansion<'a> {
    fn append(&mut self, mut rest: &str, depth: u32) -> Result<(), Diagnostic> {
        if depth > MOST_DEPTH {
            let message =
                format!("values refer to values more than {MOST_DEPTH} deep, or to themselves");
            return Err(Diagnostic::new(message).remedy("write the value out"));
        }
        while let Some((before, behind)) = rest.split_once('%') {
            self.push(before)?;
            rest = behind;
            if let Some(behind) = rest.strip_prefix('%') {
                self.push("%")?;
                rest = behind;
            } else if let Some(reference) = rest.strip_prefix('(') {
                let (name, behind) = reference.split_once(')').ok_or_else(open)?;
                rest = behind
                    .strip_prefix('s')
                    .filter(|_| !name.is_empty())
                    .ok_or_else(open)?;
                let value = self.lookup(name)?;
                self.append(value, depth + 1)?;
            } else {
                self.push("%")?;
            }
        }
        self.push(rest)
    }

    fn push(&mut self, text: &str) -> Result<(), Diagnostic> {
        self.out.push_str(text);
        if self.out.len() <= MOST_VALUE {
            return Ok(());
        }
        let message = format!("more than {MOST_VALUE} bytes");
        Err(Diagnostic::new(message).remedy("put the command into a script on the host"))
    }

    fn lookup(&mut self, name: &str) -> Result<&'a str, Diagnostic> {
        if !spend(self.budget, EACH) {
            return Err(much());
        }
        let key = name.to_lowercase();
        let entry = self.section.get(&key).or_else(|| self.defaults.get(&key));
        entry.map(|entry| entry.value.as_str()).ok_or_else(|| {
            let message =
                format!("%({name})s: there is no key '{name}' in this section or in [DEFAULT]");
            Diagnostic::new(message)
                .remedy("define the key, or write %%( if no other value is meant")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ini;
    use super::*;
    use linerate_plan::diagnostic::Lines;

    fn get(text: &str, key: &str) -> Result<String, Diagnostic> {
        let ini = ini::parse(&Lines::new(text), text, &mut Vec::new());
        let section = ini.section("Run").unwrap();
        expand(
            &section.get(key).unwrap().value,
            section,
            ini.defaults(),
            &mut { BUDGET },
        )
    }

    #[test]
    fn values_of_the_section_come_before_defaults() {
        let text = "[DEFAULT]\nnic=igb0\nnet=10.0.0.0\n[Run]\nnic=cxl0\nstep1: ifconfig %(nic)s %(NET)s %%x 5% %s";
        assert_eq!(
            get(text, "step1").unwrap(),
            "ifconfig cxl0 10.0.0.0 %x 5% %s"
        );
    }

    #[test]
    fn references_that_lead_nowhere() {
        let message = |value: &str| get(&format!("[Run]\na: {value}"), "a").unwrap_err().message;
        assert!(message("%(b)s").contains("there is no key 'b'"));
        for value in ["%(b", "%(b)", "%(b)d", "%()s"] {
            assert!(message(value).contains("does not end in )s"), "{value}");
        }
        assert!(message("x%(a)s").contains("more than 10 deep"));
    }

    #[test]
    fn values_that_double_each_other_cost_no_more_than_they_may() {
        let nest = |leaf: &str, width: usize| {
            let levels =
                (1..9).map(|n| format!("a{n}={}\n", format!("%(a{})s", n - 1).repeat(width)));
            format!("[Run]\na0={leaf}\n{}", levels.collect::<String>())
        };
        assert!(
            get(&nest("0123456789", 10), "a8")
                .unwrap_err()
                .message
                .contains("more than 49152 bytes")
        );
        assert_eq!(get(&nest("", 50), "a8"), Err(much()));
        assert_eq!(get(&nest("x", 2), "a8").unwrap().len(), 256);
    }
}
