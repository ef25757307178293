//! The changes of a host for a variant: each is journalled, together with its undoing, before it is made. They are undone in reverse order.

mod making;
mod undo;

pub use making::Changes;
pub(crate) use making::SAID;
pub use undo::Undone;
