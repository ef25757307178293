//! Values of the wire crate in the form of records: words for people.

pub use linerate_wire::text::{deserialize, serialize};

/// Frame lengths: a mix that was made longer has a name that no reader knows.
pub mod size {
    use linerate_wire::FrameMix;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Size {
        name: String,
        lengths_fcs: Vec<u16>,
    }

    /// `{"name": "IMIX (least 84)", "lengths_fcs": [84, 594, ...]}`.
    pub fn serialize<S: Serializer>(value: &FrameMix, serializer: S) -> Result<S::Ok, S::Error> {
        Size { name: value.name.clone(), lengths_fcs: value.pattern.clone() }.serialize(serializer)
    }

    /// See [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FrameMix, D::Error> {
        let Size { name, lengths_fcs: pattern } = Size::deserialize(deserializer)?;
        match pattern.iter().all(|length| (64..=16_000).contains(length)) && !pattern.is_empty() {
            true => Ok(FrameMix { name, pattern }),
            false => Err(D::Error::custom("lengths_fcs are frame lengths with FCS, from 64 to 16000")),
        }
    }
}

/// Exact rates; rates for people are rounded.
pub mod rate {
    use crate::units::Rate;
    use serde::{Deserializer, Serializer};

    /// `max`, `488281.25pps`, `1000000000bit/s:l1`, `50%`.
    pub fn serialize<S: Serializer>(value: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Rate::Max => serializer.serialize_str("max"),
            Rate::Frames(fps) => serializer.collect_str(&format_args!("{fps}pps")),
            Rate::BitsLayer1(bits) => serializer.collect_str(&format_args!("{bits}bit/s:l1")),
            Rate::BitsLayer2(bits) => serializer.collect_str(&format_args!("{bits}bit/s:l2")),
            Rate::LineShare(share) => serializer.collect_str(&format_args!("{}%", share * 100.0)),
        }
    }

    /// See [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        linerate_wire::text::deserialize(deserializer)
    }
}
