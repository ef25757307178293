//! The text that tools printed, out of the forms in which it was kept: as it was, as a conductor's list of its steps (Python's
//! bytes), or as JSON of a conductor, of `linerate conduct` or of iperf3.

use serde_json::{Deserializer, Value};

/// Lines as tools printed them, each with its line in the file, and the JSON documents of tools, each with the line where it begins.
#[derive(Debug, Default)]
pub struct Transcript {
    pub lines: Vec<(u64, String)>,
    pub documents: Vec<(u64, Value)>,
}

impl Transcript {
    pub fn read(bytes: &[u8]) -> Transcript {
        let text = String::from_utf8_lossy(bytes);
        let mut found = Transcript::default();
        if found.json(&text, None) {
            return found;
        }
        for (number, line) in (1..).zip(text.lines()) {
            match python_bytes(line) {
                Some(printed) => found.text(&printed, number),
                None => found.lines.push((number, line.into())),
            }
        }
        found
    }

    /// The text of one step, which stands on this line of the file.
    fn text(&mut self, text: &str, line: u64) {
        if !self.json(text, Some(line)) {
            self.lines
                .extend(text.lines().map(|part| (line, part.to_string())));
        }
    }

    /// Takes JSON documents, one after the other; `false` where there is anything else. `at`: the line of the file, where that is known.
    fn json(&mut self, text: &str, at: Option<u64>) -> bool {
        if !text.trim_start().starts_with('{') {
            return false;
        }
        let mut stream = Deserializer::from_str(text).into_iter::<Value>();
        let (mut found, mut begins) = (Vec::new(), 0);
        while let Some(next) = stream.next() {
            let Ok(value) = next else { return false };
            let blanks = text[begins..].len() - text[begins..].trim_start().len();
            let before = &text[..begins + blanks];
            found.push((at.unwrap_or(1 + before.matches('\n').count() as u64), value));
            begins = stream.byte_offset();
        }
        for (line, value) in found {
            self.value(line, value, at.is_none());
        }
        true
    }

    /// A tool's document, or the texts in a conductor's.
    fn value(&mut self, line: u64, value: Value, outermost: bool) {
        match value {
            Value::Object(fields)
                if fields.contains_key("end") && fields.contains_key("intervals") =>
            {
                self.documents.push((line, Value::Object(fields)));
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(text)
                            if outermost && matches!(&*name, "message" | "output") =>
                        {
                            self.text(&text, line);
                        }
                        value => self.value(line, value, outermost),
                    }
                }
            }
            Value::Array(values) => values
                .into_iter()
                .for_each(|value| self.value(line, value, outermost)),
            _ => {}
        }
    }
}

/// `0 b'first line\nsecond\n'`: the exit status of a step, and its output as Python shows bytes.
fn python_bytes(line: &str) -> Option<String> {
    let (status, shown) = line.trim().split_once(' ')?;
    status.parse::<i32>().ok()?;
    let shown = shown.strip_prefix('b')?;
    let quote = shown.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = shown.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        match if c == '\\' { rest.next() } else { None } {
            None => text.push(c),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            // No figure has other bytes.
            Some('x') => drop((rest.next(), rest.next())),
            Some(other) => text.push(other),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<(u64, String)> {
        Transcript::read(text.as_bytes()).lines
    }

    #[test]
    fn texts_come_out_of_every_form() {
        let expected = vec![(2, "one".to_string()), (2, "it's".to_string())];
        assert_eq!(lines("done\n0 b\"one\\nit's\\n\"\n")[1..], expected);
        assert_eq!(
            lines("\n0 b'one\\nit\\'s\\n'\n1 ['kldload', 'aesni']\n")[1..3],
            expected
        );
        let json = r#"{"trials": [{"phases": {"Run": {"workers": {"a": {"results": [{"code": 0, "message": "one\nit's"}]}}}}}]}"#;
        assert_eq!(lines(&format!("\n {json}")), expected);
        assert_eq!(
            lines("{\"output\": \"zero\"}\n{\"workers\": [{\"output\": \"one\\nit's\"}]}")[1..],
            expected
        );
        let iperf = r#"{"intervals": [], "end": {}}"#;
        let step = format!("{{\"output\": {}}}", Value::from(iperf));
        for text in [
            format!("\n\n{iperf}"),
            format!("\n\n{step}"),
            format!("\n\n0 b'{iperf}'"),
        ] {
            assert_eq!(
                Transcript::read(text.as_bytes()).documents.len(),
                1,
                "{text}"
            );
        }
        assert_eq!(
            Transcript::read(format!("\n\n{iperf}").as_bytes()).documents[0].0,
            3
        );
        assert_eq!(lines("{ no JSON\n").len(), 1);
        assert_eq!(lines(&"{\"output\":".repeat(1000)).len(), 1);
    }
}
