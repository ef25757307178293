//! Campaigns: a plan and a testbed become trials, and trials become records. What the user sees meanwhile, and how the user stops it.

/// As std's, which panic where standard error takes no more: `2>&1 | head` is no reason to stop measuring.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!($($text)*));
    }};
}
/// As std's, with the same exception.
#[macro_export]
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::eprint!("{}\n", format_args!($($text)*)) };
}
/// Refuses arguments that do not make sense: exit status 2.
#[macro_export]
macro_rules! bail_usage {
    ($($text:tt)*) => { return Err($crate::messages::usage(format!($($text)*))) };
}

pub mod archive;
pub mod campaign;
pub mod dataset;
pub mod fault;
pub mod git;
pub mod handle;
pub mod input;
pub mod interrupt;
pub mod kept;
pub mod messages;
pub mod plans;
pub mod progress;
pub mod session;
pub mod testbed;
