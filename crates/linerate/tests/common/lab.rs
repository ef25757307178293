//! Labs and namespaces that go with the test.

use super::{Ended, Program, linerate, unique};

/// A lab with names, which `linerate lab` has put up.
pub struct Lab {
    /// Name of the lab.
    pub name: String,
}

impl Lab {
    /// Puts a lab up: lane 0 is the tester baseline, the others as named.
    pub fn up(variants: &[&str]) -> Self {
        let name = unique("lab");
        let variants = variants.iter().flat_map(|v| ["--variant", *v]);
        linerate(["lab", "up", "--name", &name].into_iter().chain(variants))
            .run()
            .ok();
        Lab { name }
    }

    /// One of its namespaces: `generator`, `receiver`, `dut0`.
    pub fn namespace(&self, role: &str) -> String {
        format!("{}-{role}", self.name)
    }

    /// A program inside one of its namespaces.
    pub fn exec(&self, role: &str, args: &[&str]) -> Program {
        ip_exec(&self.namespace(role), args)
    }

    /// `linerate send` by an interface of the generator.
    pub fn send(&self, interface: &str, line: &str) -> Program {
        linerate([
            "send",
            "--netns",
            &self.namespace("generator"),
            "-i",
            interface,
        ])
        .args(line.split_whitespace())
    }

    /// `linerate receive` at an interface of the receiver.
    pub fn receive(&self, interface: &str, line: &str) -> Program {
        linerate([
            "receive",
            "--netns",
            &self.namespace("receiver"),
            "-i",
            interface,
        ])
        .args(line.split_whitespace())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let down = linerate(["lab", "down", "--name", &self.name]).run();
        if !std::thread::panicking() && names().contains(&self.name) {
            panic!("the lab cannot be taken down: {}", down.stderr);
        }
    }
}

fn ip_exec(namespace: &str, args: &[&str]) -> Program {
    Program::new("ip")
        .args(["netns", "exec", namespace])
        .args(args)
}

/// A namespace.
pub struct Namespace {
    /// Name of the namespace.
    pub name: String,
}

impl Namespace {
    /// An empty one.
    pub fn named(name: String) -> Self {
        ip(&format!("netns add {name}")).ok();
        Namespace { name }
    }

    /// One with a veth pair, whose ends `t0` and `t1` are both in it and up.
    pub fn new() -> Self {
        let namespace = Namespace::named(unique("ns"));
        // IPv6 announces itself on every link: the tests would count frames that linerate did not send.
        let quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
        namespace.exec(&["sh", "-c", quiet]).run().ok();
        namespace.ip("link add t0 type veth peer name t1").ok();
        for link in ["t0", "t1"] {
            namespace.ip(&format!("link set {link} up")).ok();
        }
        namespace
    }

    /// `ip` inside it.
    pub fn ip(&self, line: &str) -> Ended {
        ip(&format!("-n {} {line}", self.name))
    }

    /// A program inside it.
    pub fn exec(&self, args: &[&str]) -> Program {
        ip_exec(&self.name, args)
    }

    /// Frames that `t0` has sent.
    pub fn sent(&self) -> u64 {
        let document = self.ip("-j -s link show t0").ok().json();
        document[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.name));
    }
}

/// The names of the network namespaces that have one.
pub fn names() -> String {
    ip("netns list").ok().stdout
}

/// `ip` with arguments that are separated by blanks.
pub fn ip(line: &str) -> Ended {
    Program::new("ip").args(line.split_whitespace()).run()
}
