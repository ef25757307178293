//! The machine that measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `host.json`: the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Format version: 2.
    pub version: u32,
    /// `uname -r` and `-v`.
    pub kernel: String,
    /// Operating system's own name.
    pub os: String,
    /// Machine type: `x86_64`.
    pub machine: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: u32,
    /// Hypervisor, if one is visible.
    pub hypervisor: Option<String>,
    /// Memory in bytes.
    pub memory: u64,
    /// Frequency governor, or the reason why it is unknown.
    pub governor: String,
    /// Clock source.
    pub clock_source: String,
    /// CPU vulnerability -> mitigation.
    pub mitigations: BTreeMap<String, String>,
    /// Network interfaces of the host: name -> driver, speed, offloads.
    pub interfaces: BTreeMap<String, String>,
    /// Versions of the tools in use.
    pub versions: BTreeMap<String, String>,
    /// Kernel settings that bear on forwarding.
    pub settings: BTreeMap<String, String>,
    /// How linerate's threads came before other programs, or why they did not; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Result<String, String>>,
}
