//! `linerate run` on routers and testers that are scripts behind the real sshd: nothing of this machine is measured, and these tests may
//! run side by side.

#[path = "routers/bsd.rs"]
mod bsd;
mod common;
#[path = "routers/freebsd.rs"]
mod freebsd;
#[path = "routers/freebsd_rules.rs"]
mod freebsd_rules;
#[path = "routers/generators.rs"]
mod generators;
#[path = "routers/interrupted.rs"]
mod interrupted;
#[path = "routers/kernel.rs"]
mod kernel;
#[path = "routers/lost.rs"]
mod lost;
#[path = "routers/openbsd.rs"]
mod openbsd;
#[path = "routers/put_back.rs"]
mod put_back;
#[path = "hosts/site.rs"]
mod site;
#[path = "../../remote/tests/common/sshd.rs"]
mod sshd;

use site::trials;
