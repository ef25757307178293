//! The blocks as they are, for programs.

use super::render::{Format, Style};
use crate::document::Document;

#[derive(Debug)]
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn render(&self, document: &Document, _: Style) -> String {
        serde_json::to_string_pretty(document).expect("blocks are plain data") + "\n"
    }
}
