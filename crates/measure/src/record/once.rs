//! Slots in a record: what their traffic says is not said again.

use super::Slot;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes slots without the fields that follow from their traffic.
pub(super) fn serialize<S: Serializer>(slots: &[Slot], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(slots.iter().map(|slot| match slot.traffic {
        Some(_) => with_frames_of(slot.clone(), &Slot::default()),
        None => slot.clone(),
    }))
}

/// Reads slots, and puts the fields that follow from their traffic back.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Slot>, D::Error> {
    let slots: Vec<Slot> = Deserialize::deserialize(deserializer)?;
    Ok(slots.into_iter().map(joined).collect())
}

fn joined(slot: Slot) -> Slot {
    let Some(traffic) = &slot.traffic else {
        return slot;
    };
    let frames = Slot {
        family: traffic.frame.family.to_string(),
        transport: traffic.frame.transport.to_string(),
        frame: traffic.mix.name.clone(),
        lengths_fcs: traffic.mix.pattern.clone(),
        l4_checksum: traffic.frame.l4_checksum,
        signed: traffic.frame.signed,
        flows: Some(traffic.flows.len()),
        order: traffic.order.to_string(),
        ..Slot::default()
    };
    with_frames_of(slot, &frames)
}

/// A slot with the frames of another.
fn with_frames_of(slot: Slot, other: &Slot) -> Slot {
    let Slot {
        family,
        transport,
        frame,
        lengths_fcs,
        l4_checksum,
        signed,
        flows,
        order,
        ..
    } = other.clone();
    Slot {
        family,
        transport,
        frame,
        lengths_fcs,
        l4_checksum,
        signed,
        flows,
        order,
        ..slot
    }
}
