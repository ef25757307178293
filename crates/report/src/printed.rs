//! A campaign as JSON, and the JSON Schema of that and of the files of a record: both come from the types.

use crate::prelude::*;
use linerate_measure::record::SlotFacts;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use std::path::Path;

/// The schema of [`Printed`], draft 2020-12. Its definitions also have the lines of trials.jsonl and facts.jsonl. A test of `linerate` holds
/// it against the types.
pub const SCHEMA: &str = include_str!("printed.schema.json");

/// A campaign as linerate's bench, run and show print it with --json. Rates are frames a second, times nanoseconds (_ns), lengths bytes
/// with FCS (_fcs), shares 0 to 1. Slots are referred to by number.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "A campaign as JSON")]
pub struct Printed<'a> {
    /// Where the records are.
    pub directory: &'a Path,
    /// The contents of campaign.json.
    pub campaign: &'a Campaign,
    /// The contents of host.json.
    pub host: &'a HostFacts,
    /// The contents of summary.json.
    pub summary: &'a Summary,
    /// How DUTs were configured, of the slots that were asked before their first trial.
    pub configurations: Vec<Configured>,
}

/// How the DUT of a slot was configured.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Configured {
    /// Slot, an index into the campaign's.
    pub slot: usize,
    /// The settings that bear on forwarding; `None` where the DUT's kernel is not known.
    pub configuration: Option<Configuration>,
}

impl Configured {
    /// Reads the answers of a slot's DUT.
    pub fn of(facts: &SlotFacts) -> Configured {
        Configured {
            slot: facts.slot,
            configuration: Configuration::recorded(facts),
        }
    }
}

/// The text of [`SCHEMA`], by the types. No verb calls this: the code of all schemas is not in the program.
pub fn schema_of_types() -> String {
    let transform = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".into(), json!(false));
        }
        if let Some(Value::String(words)) = schema.get_mut("description") {
            *words = words
                .replace("[`", "`")
                .replace("`]", "`")
                .replace("`None`", "null")
                .replace('\n', " ");
        }
    });
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(transform);
    let mut generator = settings.into_generator();
    generator.subschema_for::<TrialRecord>();
    generator.subschema_for::<SlotFacts>();
    format!(
        "{:#}\n",
        generator.into_root_schema_for::<Printed<'_>>().to_value()
    )
}
