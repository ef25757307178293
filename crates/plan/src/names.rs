//! Names of values. An enum whose values carry no data is called in files, records and messages as serde calls it; nothing lists its
//! names a second time.

use crate::diagnostic::{listed, suggestion};
use serde::de::value::{Error, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// An enum whose values have names.
pub trait Named: DeserializeOwned + Copy + PartialEq {
    /// The names of all values, in the order of the enum.
    fn names() -> &'static [&'static str] {
        let mut names: &[&str] = &[];
        // The derived code passes its names to `Asked`, which returns no value.
        let _ = Self::deserialize(Asked(&mut names));
        names
    }

    /// All values.
    fn all() -> impl Iterator<Item = Self> {
        Self::names().iter().filter_map(|name| Self::of_name(name))
    }

    /// The value of a name.
    fn of_name(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// The name of a value.
    fn name(self) -> &'static str {
        Self::names()
            .iter()
            .find(|name| Self::of_name(name) == Some(self))
            .unwrap_or(&"")
    }

    /// The value of a name that a user gave.
    ///
    /// # Errors
    /// No value of `what` has this name.
    fn parse_name(name: &str, what: &str) -> Result<Self, String> {
        let names = || Self::names().iter().copied();
        Self::of_name(name)
            .ok_or_else(|| format!("'{name}' is not {what}: {}", suggestion(name, names())))
    }

    /// All names in a sentence.
    fn listed() -> String {
        listed(Self::names(), "and")
    }
}

impl<T: DeserializeOwned + Copy + PartialEq> Named for T {}

/// Takes the names that a type asks for.
struct Asked<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(de::Error::custom("not an enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = variants;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::CardSetting;
    use linerate_measure::experiment::System;

    #[test]
    fn names_are_those_of_serde() {
        assert_eq!(
            System::names(),
            ["linux", "vyos", "freebsd", "pfsense", "opnsense", "openbsd"]
        );
        assert!(System::all().all(|system| System::of_name(system.name()) == Some(system)));
        assert_eq!(CardSetting::UdpGroForwarding.name(), "udp-gro-forwarding");
        assert_eq!(System::of_name("Linux"), None);
        let wrong = System::parse_name("freebds", "a system").unwrap_err();
        assert_eq!(
            wrong,
            "'freebds' is not a system: did you mean \"freebsd\"?"
        );
    }
}
