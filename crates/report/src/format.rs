//! How documents are drawn. A new format is a file beside these and a line in [`FORMATS`].

mod csv;
pub(crate) mod html;
mod json;
mod markdown;
mod plots;
mod render;
mod text;

pub use plots::strip;
pub use render::{Format, Style};
pub(crate) use render::{lines, plain};
pub use text::{Text, ascii};

/// All formats. The first is the default on a terminal.
pub const FORMATS: [&dyn Format; 5] = [
    &Text,
    &json::Json,
    &markdown::Markdown,
    &csv::Csv,
    &html::Html,
];

#[cfg(test)]
mod tests;
