//! Values of the wire crate as they are written in records: in the words that their readers understand.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use std::fmt::Display;
use std::str::FromStr;

/// Writes a value as its text.
pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Reads a value from its text.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr,
    T::Err: Display,
    D: Deserializer<'de>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// IP versions, which have no reader of their own.
pub mod family {
    use super::{Deserialize, Deserializer, Error, Serializer};
    use linerate_wire::Family;

    /// `IPv4` or `IPv6`.
    pub fn serialize<S: Serializer>(value: &Family, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// See [`serialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Family, D::Error> {
        let text = String::deserialize(deserializer)?;
        let family = [Family::V4, Family::V6].into_iter().find(|f| f.to_string() == text);
        family.ok_or_else(|| D::Error::custom(format!("'{text}' is not IPv4 or IPv6")))
    }
}

/// Frame lengths: a mix that was made longer has a name that no reader knows.
pub mod size {
    use super::{Deserialize, Deserializer, Error, Serializer};
    use linerate_wire::FrameMix;
    use serde::Serialize;

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

/// Rates, exactly: what is shown to people is rounded.
pub mod rate {
    use super::{Deserializer, Serializer};
    use crate::units::Rate;

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
        super::deserialize(deserializer)
    }
}
