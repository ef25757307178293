//! The grammar of plans and of lab files: tables of keys, each with the kind of its value and its meaning.
//!
//! Reader, JSON Schema and the paths that factors may set all come from the same tables ([`super::keys`]), so that they cannot
//! differ.

use super::diagnostic::{Diagnostic, listed, meant};
use super::dut::Cpus;
use super::forms::{self, Form};
use super::value::label;
use serde_json::{Value as Json, json};

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    /// Description for people and for editors.
    pub(crate) about: &'static str,
}

/// A key that may be left out.
pub(crate) const fn key(name: &'static str, kind: Kind) -> Key {
    Key {
        name,
        kind,
        required: false,
        about: "",
    }
}

/// A key that must be there.
pub(crate) const fn required(name: &'static str, kind: Kind) -> Key {
    Key {
        required: true,
        ..key(name, kind)
    }
}

impl Key {
    pub(crate) const fn about(self, about: &'static str) -> Key {
        Key { about, ..self }
    }
}

/// A table of keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Name in messages: `a variant`.
    pub(crate) what: &'static str,
    /// Keys, in groups that several tables may share.
    pub(crate) keys: &'static [&'static [Key]],
}

impl Table {
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().flat_map(|group| group.iter())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        self.all().find(|key| key.name == name)
    }
}

/// Words, each with its meaning.
pub(crate) type Words = &'static [(&'static str, &'static str)];

/// The kind of value of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Text of any number of lines, which may have placeholders.
    Text,
    /// One line of text, not empty.
    Line,
    /// true or false.
    Flag,
    /// A whole number in these bounds.
    Count { least: u64, most: u64 },
    /// A text of this form.
    Form(&'static Form),
    /// A quantity of this form, in these bounds of its smallest unit.
    Within(&'static Form, u64, u64),
    /// A quantity in these bounds; true stands for the default, false for none.
    Optional {
        form: &'static Form,
        least: u64,
        most: u64,
        default: u64,
    },
    /// How many CPUs, or all.
    CpuCount,
    /// A kind of DUT.
    Dut,
    /// A kernel setting's value: a number, true or false (1 or 0), or text.
    Setting,
    /// One of these words.
    Choice(Words),
    /// A factor's levels: scalars that the field which is set must be able to take.
    Levels,
    /// Cells: a variant's name, or a table of `variant` and levels by factor.
    Selector,
    /// Several of a kind, at least one.
    List(&'static Kind),
    /// One or several of a kind.
    OneOrMore(&'static Kind),
    /// A table.
    Table(&'static Table),
    /// Several tables, `[[...]]`.
    Tables(&'static Table),
    /// A table whose names the author chooses; the text describes these names.
    Named(&'static Kind, &'static str),
}

impl Kind {
    /// A whole number in these bounds.
    pub(crate) const fn count(least: u64, most: u64) -> Kind {
        Kind::Count { least, most }
    }

    /// A length of time, in these bounds of nanoseconds.
    pub(crate) const fn duration(least: u64, most: u64) -> Kind {
        Kind::Within(&forms::DURATION, least, most)
    }

    /// The expected value, with an example: follows "write".
    pub(crate) fn wants(&self) -> String {
        match self {
            Kind::Text => "a text in quotes".into(),
            Kind::Line => "a line of text in quotes".into(),
            Kind::Flag => "true or false".into(),
            Kind::Count { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Form(form) | Kind::Within(form, ..) => form.wants.into(),
            Kind::Optional { form, .. } => format!("true, false or {}", form.wants),
            Kind::CpuCount => "a number of CPUs, or \"all\"".into(),
            Kind::Dut => "\"forwarding\", \"bridge\" or another kind of DUT".into(),
            Kind::Setting => "a number or a text".into(),
            Kind::Choice(words) => listed(&quoted(words), "or"),
            Kind::Levels => "a list of levels such as [1, 10, 100]".into(),
            Kind::Selector => "a variant's name, or { variant = \"...\", FACTOR = LEVEL }".into(),
            Kind::List(of) => format!("a list: [...], of {}", of.wants()),
            Kind::OneOrMore(of) => of.wants(),
            Kind::Table(table) => format!("a table: {}", table.what),
            Kind::Tables(table) => format!("[[tables]]: each {}", table.what),
            Kind::Named(_, names) => format!("a table of {names}"),
        }
    }

    /// Reads a scalar of the file into its form in records.
    ///
    /// # Errors
    /// The fault in the scalar.
    pub(crate) fn read(&self, raw: &Json) -> Result<Json, Diagnostic> {
        match (self, raw) {
            (Kind::Text, Json::String(text)) => {
                forms::placeholders_known(text).map(|()| raw.clone())
            }
            (Kind::Flag, Json::Bool(_)) | (Kind::Levels | Kind::Selector, _) => Ok(raw.clone()),
            (Kind::Line, Json::String(text)) => forms::line(text),
            (Kind::Count { least, most }, Json::Number(n)) if !n.is_f64() => {
                count(raw, *least, *most)
            }
            (Kind::CpuCount, Json::Number(n)) if !n.is_f64() => {
                let count = count(raw, 1, 8192)?.as_u64().unwrap_or_default();
                Ok(json!(Cpus::Count(count as u32)))
            }
            (Kind::CpuCount, Json::String(text)) if text.trim() == "all" => Ok(json!(Cpus::All)),
            (Kind::Dut, Json::String(text)) => forms::dut(text).map(|dut| json!(dut)),
            (Kind::Setting, Json::Bool(flag)) => Ok(u8::from(*flag).to_string().into()),
            (Kind::Setting, Json::String(text)) if text.contains('\n') => {
                Err(Diagnostic::new("a setting's value must be a single line"))
            }
            (Kind::Setting, raw) => {
                forms::placeholders_known(&label(raw)).map(|()| label(raw).into())
            }
            (Kind::Choice(words), Json::String(text)) => choice(words, text.trim()),
            (Kind::OneOrMore(of), raw) => of.read(raw),
            (Kind::Optional { default, .. }, Json::Bool(on)) => Ok(on.then_some(*default).into()),
            (
                Kind::Form(form) | Kind::Within(form, ..) | Kind::Optional { form, .. },
                Json::Number(_),
            ) if !form.units.is_empty() => Err(forms::bare(&label(raw), form.units)),
            (Kind::Form(form), Json::String(text)) => form.read(text),
            (
                Kind::Within(form, least, most)
                | Kind::Optional {
                    form, least, most, ..
                },
                Json::String(text),
            ) => within(form, *least, *most, text),
            _ => Err(self.wrong_type(raw)),
        }
    }

    fn wrong_type(&self, raw: &Json) -> Diagnostic {
        let found = match raw {
            Json::Number(_) => format!("the number {}", label(raw)),
            Json::String(text) => {
                format!("the text \"{}\"", text.chars().take(40).collect::<String>())
            }
            other => other.to_string(),
        };
        let quoted = raw.as_str().filter(|_| matches!(self, Kind::Count { .. }));
        let number =
            quoted.and_then(|text| text.trim().replace(['_', ','], "").parse::<u64>().ok());
        let help = match number {
            Some(number) => format!("write {number} without quotes"),
            None => format!("write {}", self.wants()),
        };
        Diagnostic::new(format!("{found} does not belong here")).remedy(help)
    }
}

fn count(raw: &Json, least: u64, most: u64) -> Result<Json, Diagnostic> {
    let wrong = match raw.as_u64() {
        Some(n) if (least..=most).contains(&n) => return Ok(n.into()),
        Some(n) if n < least => format!("{n} is too few: at least {least}"),
        Some(n) => format!("{n} is too many: at most {most}"),
        None => format!("{raw} is negative"),
    };
    Err(Diagnostic::new(wrong).remedy(format!("write a whole number from {least} to {most}")))
}

fn within(form: &Form, least: u64, most: u64, text: &str) -> Result<Json, Diagnostic> {
    let json = form.read(text)?;
    let value = json.as_u64().unwrap_or_default();
    let shown = |n: u64| {
        if form.units == ["B"] {
            format!("{n} B")
        } else {
            forms::duration_text(n)
        }
    };
    let wrong = match value {
        n if n < least => format!("{text} is too little: at least {}", shown(least)),
        n if n > most => format!("{text} is too much: at most {}", shown(most)),
        _ => return Ok(json),
    };
    Err(Diagnostic::new(wrong).remedy(format!(
        "write a value from \"{}\" to \"{}\"",
        shown(least),
        shown(most)
    )))
}

fn choice(words: Words, word: &str) -> Result<Json, Diagnostic> {
    if words.iter().any(|(name, _)| *name == word) {
        return Ok(word.into());
    }
    let names = quoted(words);
    let help = match meant(word, words.iter().map(|(name, _)| *name)) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => format!("write {}", listed(&names, "or")),
    };
    Err(Diagnostic::new(format!("'{word}' is not one of {}", listed(&names, "and"))).remedy(help))
}

fn quoted(words: Words) -> Vec<String> {
    words
        .iter()
        .map(|(word, _)| format!("\"{word}\""))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_bounds() {
        let kind = Kind::Count { least: 1, most: 10 };
        assert_eq!(kind.read(&json!(10)), Ok(json!(10)));
        for (n, says) in [
            (json!(0), "too few"),
            (json!(11), "too many"),
            (json!(-1), "negative"),
        ] {
            assert!(kind.read(&n).unwrap_err().message.contains(says), "{n}");
        }
        let quoted = kind.read(&json!("1,0")).unwrap_err();
        assert_eq!(quoted.remedy.as_deref(), Some("write 10 without quotes"));
    }

    #[test]
    fn bare_numbers_are_asked_for_their_unit() {
        let kind = Kind::duration(1, 100_000_000_000);
        let wrong = kind.read(&json!(250)).unwrap_err();
        assert!(
            wrong.message.contains("250 of what?") && wrong.remedy.unwrap().contains("\"250 ms\"")
        );
        let wrong = kind.read(&json!("2 min")).unwrap_err();
        assert_eq!(wrong.message, "2 min is too much: at most 100 s");
        let size = Kind::Form(&forms::SIZE).read(&json!(64)).unwrap_err();
        assert!(size.remedy.unwrap().contains("\"64 B\""));
    }
}
