//! What people are shown of changes.

use super::*;

#[test]
fn programs_are_shown_without_our_scripts() {
    let steps = Program::new(["sh", "-c", "long\nscript", "linerate", "/etc/pf.conf"]);
    assert_eq!(shown(&steps), "a script of linerate with /etc/pf.conf");
    assert_eq!(shown(&Program::new(["sysctl", "a=1\u{7}"])), "sysctl a=1?");
}
