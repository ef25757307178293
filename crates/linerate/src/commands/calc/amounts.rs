//! Numbers with units in the arguments of `calc`: rates, clocks, counts, sizes of memory.

use linerate_calc::ethernet::{self, Load};
use linerate_plan::units::{number_and_unit, parse_link_speed};

/// A link's speed or a rate of frames: `10G`, `1.5Mpps`.
pub(super) fn load(text: &str) -> Result<Load, String> {
    let wrong = |_| format!("'{text}' is neither a link speed nor a rate: write 10G or 1.488Mpps");
    frames(text)
        .map(Load::Frames)
        .or_else(|_| parse_link_speed(text).map(Load::Link))
        .map_err(wrong)
}

/// A rate with its layer.
pub(super) fn rate(text: &str) -> Result<ethernet::Rate, String> {
    if let Ok(fps) = frames(text) {
        return Ok(ethernet::Rate::Frames(fps));
    }
    let (number, layer) = text.rsplit_once([':', '@']).unwrap_or((text, ""));
    let bits = amount(number, &["bit/s", "bits/s", "bps"], "a rate");
    let bits = bits.or_else(|_| amount(number, &["B/s", "Bps"], "a rate").map(|bytes| 8.0 * bytes));
    match (bits, layer.to_ascii_lowercase().as_str()) {
        (Ok(bits), "l1") => Ok(ethernet::Rate::Layer1(bits)),
        (Ok(bits), "l2") => Ok(ethernet::Rate::Layer2(bits)),
        (Ok(bits), "l3") => Ok(ethernet::Rate::Layer3(bits)),
        (Ok(_), "") => Err(format!(
            "'{text}' does not say which bits: write {text}:l1 (with preamble and gap), {text}:l2 (frames with FCS) or {text}:l3 (IP packets)"
        )),
        _ => Err(format!(
            "'{text}' is not a rate: write 1.488Mpps, 1Gbit/s:l2 or 125MB/s:l3"
        )),
    }
}

/// A clock: `2.4GHz`.
pub(super) fn hertz(text: &str) -> Result<f64, String> {
    amount(text, &["Hz", "hz"], "a clock: write 2.4GHz or 800MHz")
}

/// A number of things: `5M`, `32768`.
pub(super) fn count(text: &str) -> Result<f64, String> {
    amount(text, &[""], "a number: write 32768, 500k or 5M")
}

/// A rate of frames: `1.5Mpps`.
pub(super) fn frames(text: &str) -> Result<f64, String> {
    amount(
        text,
        &["pps", "fps"],
        "a rate of frames: write 1.488Mpps or 700kpps",
    )
}

fn amount(text: &str, units: &[&str], what: &str) -> Result<f64, String> {
    let read = number_and_unit(text).filter(|(_, unit)| units.contains(unit));
    read.map(|(number, _)| number)
        .ok_or_else(|| format!("'{text}' is not {what}"))
}

/// A size of memory: `8GiB` and `8G` are binary, `8GB` is decimal.
pub(super) fn bytes(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a size: write 65536, 64KiB, 16MiB or 8GiB");
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    let prefix = text.trim_end().trim_end_matches(unit).chars().last();
    let steps = prefix.map_or(0, |c| {
        "kmgt"
            .find(c.to_ascii_lowercase())
            .map_or(0, |at| at as i32 + 1)
    });
    match unit {
        "B" | "b" => Ok(number),
        "" | "iB" | "ib" => Ok(number * 1.024f64.powi(steps)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_unless_they_say_otherwise() {
        let near = |text: &str, size: f64| {
            assert!((bytes(text).unwrap() / size - 1.0).abs() < 1e-12, "{text}")
        };
        near("65536", 65_536.0);
        near("64KiB", 65_536.0);
        near("64 k", 65_536.0);
        near("8GiB", 8.0 * 1073741824.0);
        near("8GB", 8e9);
        near("100B", 100.0);
        for bad in ["", "8GiBs", "x", "-1", "8 apples"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
