//! The stand-ins for BSD hosts (crates/linerate/tests/bsd-host), without an sshd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../linerate/tests/bsd-host");

pub struct Host {
    pub state: PathBuf,
}

impl Host {
    pub fn new(system: &str, name: &str) -> Self {
        let state =
            std::env::temp_dir().join(format!("linerate-bsd-host-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&state);
        let ports = [
            "igb1:00-0d-b9-41-ca-3d:198.18.0.205/24",
            "igb2:00-0d-b9-41-ca-3e:198.19.0.205/24",
        ];
        let made = Command::new(Path::new(STAND_IN).join("new-host"))
            .args([state.as_os_str().to_str().unwrap(), system, name])
            .args(ports)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let host = Host { state };
        host.set("pace", "0.02");
        host
    }

    pub fn set(&self, file: &str, text: &str) {
        fs::write(self.state.join(file), format!("{text}\n")).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.state.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    pub fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("env");
        command
            .arg(format!(
                "PATH={STAND_IN}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
            ))
            .args(argv)
            .env("BSD_HOST", &self.state)
            .env_remove("SSH_CONNECTION");
        command
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.state);
    }
}
