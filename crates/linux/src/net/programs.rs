//! eBPF programs of a namespace's devices that no tool of iproute2 shows: those of tcx.

use super::Netns;
use super::netlink::Route;
use crate::bpf;
use crate::error::Error;
use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use serde_json::{Value, json};

/// Devices that are looked at.
const MOST_DEVICES: usize = 256;

/// The programs of tcx on all devices of a namespace, as the question of linerate_hosts about programs has them: a line with a title, and a
/// JSON array.
///
/// # Errors
/// The kernel has no tcx (before Linux 6.6), or does not let this process look.
pub fn of_tcx(namespace: &Netns) -> Result<String, Error> {
    let devices = Route::open(namespace)?.links()?;
    let found = namespace.run(|| {
        let mut all = Vec::new();
        for device in devices.iter().take(MOST_DEVICES) {
            for (direction, kind) in [
                (TcAttachType::Ingress, "tcx/ingress"),
                (TcAttachType::Egress, "tcx/egress"),
            ] {
                let programs = attached(&device.name, direction)
                    .map_err(|error| bpf::program_error("tcx", &error))?;
                all.extend(programs.into_iter().map(|[id, name, tag]| {
                    json!({ "devname": device.name, "kind": kind, "id": id, "name": name, "tag": tag })
                }));
            }
        }
        Ok(all)
    })?;
    Ok(format!("==> tcx <==\n{}\n", Value::from(found)))
}

fn attached(device: &str, direction: TcAttachType) -> Result<Vec<[Value; 3]>, ProgramError> {
    let (_, programs) = SchedClassifier::query_tcx(device, direction)?;
    let of = |program: &aya::programs::ProgramInfo| {
        let tag = format!("{:016x}", program.tag());
        [
            program.id().into(),
            program.name_as_str().into(),
            tag.into(),
        ]
    };
    Ok(programs.iter().map(of).collect())
}
