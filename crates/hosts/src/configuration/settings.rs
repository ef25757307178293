//! Settings by the kernel's names: how those of the catalogue are asked for.

use crate::systems::question::pass_over;
use crate::systems::text::script;
use crate::systems::{BSD, Kernel, LINUX};
use linerate_plan::sysctl;

/// The arguments of sysctl(8) for them.
pub(super) fn of(kernel: Kernel) -> Vec<&'static str> {
    let names = sysctl::asked(kernel.into());
    pass_over(kernel).into_iter().chain(names).collect()
}

/// Whether a setting is one that is asked for. A BSD system may have settings of each other.
pub(super) fn is_asked(kernel: Kernel, name: &str) -> bool {
    let kernels = if kernel == Kernel::Linux { LINUX } else { BSD };
    kernels
        .iter()
        .any(|kernel| sysctl::is_asked((*kernel).into(), name))
}

/// The command for them. sysctl(8) fails if one of them is not there, or is for root alone; the others are answers all the same. The
/// shell expands patterns.
pub(super) fn command(names: &[&str]) -> Vec<String> {
    const ALL: &str =
        "command -v sysctl >/dev/null || exit 127\ncd /proc/sys 2>/dev/null\nsysctl $@; :";
    script(ALL, "sysctl", names)
}
