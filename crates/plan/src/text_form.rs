//! Values of the wire crate in the form of records: words for people.

pub use linerate_wire::text::{deserialize, serialize};

/// Exact rates; rates for people are rounded.
pub mod rate {
    use crate::units::{Rate, percent};
    use serde::{Deserializer, Serializer};

    /// `max`, `488281.25pps`, `1000000000bit/s:l1`, `50%`.
    pub fn serialize<S: Serializer>(value: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Rate::Max => serializer.serialize_str("max"),
            Rate::Frames(fps) => serializer.collect_str(&format_args!("{fps}pps")),
            Rate::BitsLayer1(bits) => serializer.collect_str(&format_args!("{bits}bit/s:l1")),
            Rate::BitsLayer2(bits) => serializer.collect_str(&format_args!("{bits}bit/s:l2")),
            Rate::LineShare(share) => serializer.collect_str(&format_args!("{}%", percent(*share))),
        }
    }

    /// See [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        linerate_wire::text::deserialize(deserializer)
    }
}
