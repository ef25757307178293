//! The other generators: how each is started for the contest's traffic, and a slice of it.

use crate::Failure;
use crate::session::{Session, complaint};
use crate::stand::{self, FLOWS, FRAME_FCS, GENERATOR_CPU, Testbed};
use linerate_linux::net::netlink::{Route, VethEnd};
use linerate_linux::net::{Netns, sysctl};
use linerate_linux::ports::xdp_receiver::XdpReceiver;
use linerate_linux::ports::{Arrival, Port};
use linerate_wire::{Family, FlowSpace, FrameTemplate, pcap};
use std::fmt::{self, Display, Write as _};
use std::fs::{self, File};
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a program may take to its first frames: DPDK sets up its memory for seconds.
const START_WITHIN: Duration = Duration::from_secs(8);
/// Load before the measured window.
const WARM_UP: Duration = Duration::from_millis(100);
/// Frames that show that the load has begun: fewer may be a link's own chatter.
const BEGUN: u64 = 1000;
/// Between slices: what is in a killed program's queues still arrives.
const REST: Duration = Duration::from_millis(40);
/// The CPU of what does not send: iperf3's server, testpmd's main thread.
const OTHER_CPU: u32 = 1;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 10, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 10, 1));
const CLIENT_MAC: [u8; 6] = [2, b'L', b'R', 255, 0, 1];
const SERVER_MAC: [u8; 6] = [2, b'L', b'R', 255, 0, 4];

/// A packet generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// netsniff-ng's, AF_PACKET ring.
    Trafgen,
    /// AF_PACKET, from memory.
    Tcpreplay,
    /// DPDK over AF_XDP.
    Testpmd,
    /// xdp-tools': XDP live frames.
    XdpTrafficgen,
    /// UDP sockets.
    Iperf3,
    /// Raw sockets.
    Hping3,
}

impl Tool {
    /// All of them.
    pub const ALL: [Tool; 6] = [
        Tool::Trafgen,
        Tool::Tcpreplay,
        Tool::Testpmd,
        Tool::XdpTrafficgen,
        Tool::Iperf3,
        Tool::Hping3,
    ];

    /// The executable.
    pub fn program(self) -> &'static str {
        match self {
            Tool::Trafgen => "trafgen",
            Tool::Tcpreplay => "tcpreplay",
            Tool::Testpmd => "dpdk-testpmd",
            Tool::XdpTrafficgen => "xdp-trafficgen",
            Tool::Iperf3 => "iperf3",
            Tool::Hping3 => "hping3",
        }
    }

    /// Where it is installed.
    pub fn find(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        std::env::split_paths(&path)
            .chain(system)
            .map(|d| d.join(self.program()))
            .find(|f| f.is_file())
    }

    /// Whether it sends through an IP stack, and so needs addresses of its own.
    fn needs_addresses(self) -> bool {
        matches!(self, Tool::Iperf3 | Tool::Hping3)
    }

    /// The CPU it is bound to; testpmd divides its threads itself.
    fn cpu(self) -> Option<u32> {
        (self != Tool::Testpmd).then_some(GENERATOR_CPU)
    }

    /// Arguments of the tool: the best that it can do with one sending thread.
    fn arguments(self, interface: &str, inputs: &Inputs) -> String {
        let Inputs {
            config,
            capture,
            destination,
        } = inputs;
        let (config, capture) = (config.display(), capture.display());
        match self {
            Tool::Trafgen => format!("-i {config} -o {interface} --cpus 1 -Q"),
            Tool::Tcpreplay => {
                format!("-i {interface} --preload-pcap --topspeed --loop=0 {capture}")
            }
            Tool::Testpmd => format!(
                "-l {GENERATOR_CPU},{OTHER_CPU} --main-lcore {OTHER_CPU} --no-huge -m 256 --no-pci \
                 --vdev=net_af_xdp0,iface={interface} -- --forward-mode=txonly --txonly-multi-flow --txpkts=60 \
                 --auto-start --total-num-mbufs=8192"
            ),
            Tool::XdpTrafficgen => format!("udp -d {FLOWS} -t 1 -m {destination} {interface}"),
            Tool::Iperf3 => format!("-4 -u -b 0 -l 18 -t 15 -A {GENERATOR_CPU} -c {SERVER}"),
            Tool::Hping3 => format!("--flood -q --udp -d 18 -p 2001 {SERVER}"),
        }
    }
}

impl Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tool::Testpmd => "testpmd over net_af_xdp",
            Tool::Iperf3 => "iperf3 -u",
            Tool::Hping3 => "hping3 --flood",
            other => other.program(),
        })
    }
}

/// Files that a lane's programs read.
struct Inputs {
    config: PathBuf,
    capture: PathBuf,
    destination: String,
}

/// The tools' files and, for those that need addresses, their own link.
pub struct Toolbox {
    folder: PathBuf,
    pair: Option<Pair>,
}

impl Toolbox {
    /// Makes the folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new() -> Result<Toolbox, Failure> {
        let folder = std::env::temp_dir().join(format!("linerate-peers-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
        Ok(Toolbox { folder, pair: None })
    }

    /// One slice of a tool on a lane of the testbed, or on its own link where it needs addresses.
    ///
    /// # Errors
    /// The tool does not start, or sends nothing; with its own words.
    pub fn slice(
        &mut self,
        tool: Tool,
        stand: &mut Testbed,
        lane: usize,
        window: Duration,
    ) -> Result<f64, Failure> {
        let log = self.folder.join(format!("{}.log", tool.program()));
        File::create(&log)?;
        let rate = if tool.needs_addresses() {
            self.addressed_slice(tool, &log, window)
        } else {
            self.lane_slice(tool, stand, lane, &log, window)
        };
        std::thread::sleep(REST);
        rate.map_err(|e| format!("{tool} {e}: {}", complaint(&log)).into())
    }

    fn lane_slice(
        &self,
        tool: Tool,
        stand: &mut Testbed,
        lane: usize,
        log: &Path,
        window: Duration,
    ) -> Result<f64, Failure> {
        let inputs = self.inputs(stand, lane)?;
        let interface = stand.lab.lanes[lane].generator.name.clone();
        let command = command(
            tool,
            &stand.lab.generator.namespace,
            &tool.arguments(&interface, &inputs),
        )?;
        let receiver = stand.receiver(lane);
        receiver.start(&stand::load(window))?;
        let mut session = Session::start(command, tool.cpu(), log)?;
        wait(&mut session, || Ok(receiver.frames()))?;
        std::thread::sleep(WARM_UP);
        Ok(stand::count(receiver, window))
    }

    /// The receiver is attached once the load has begun: before, it would swallow iperf3's control connection, and
    /// afterwards nobody needs that until the end, which does not come. So all tools face the same receiver.
    fn addressed_slice(
        &mut self,
        tool: Tool,
        log: &Path,
        window: Duration,
    ) -> Result<f64, Failure> {
        if self.pair.is_none() {
            self.pair = Some(Pair::new()?);
        }
        let pair = self.pair.as_ref().ok_or("no link")?;
        let _server = if tool == Tool::Iperf3 {
            Some(pair.serve(log)?)
        } else {
            None
        };
        let inputs = Inputs {
            config: PathBuf::new(),
            capture: PathBuf::new(),
            destination: String::new(),
        };
        let command = command(tool, &pair.client, &tool.arguments("c0", &inputs))?;
        let before = pair.received()?;
        let mut session = Session::start(command, tool.cpu(), log)?;
        wait(&mut session, || Ok(pair.received()? - before))?;
        let at = Arrival {
            ifindex: pair.server_index,
            queues: 1,
        };
        let mut receiver = XdpReceiver::new(&pair.server, at, stand::filter(true))?;
        receiver.start(&stand::load(window))?;
        wait(&mut session, || Ok(receiver.frames()))?;
        std::thread::sleep(WARM_UP);
        Ok(stand::count(&receiver, window))
    }

    /// Our frames, but for the signature, as trafgen and tcpreplay read them; written once for each lane.
    fn inputs(&self, stand: &Testbed, lane: usize) -> Result<Inputs, Failure> {
        let (config, capture) = (
            self.folder.join(format!("lane{lane}.cfg")),
            self.folder.join(format!("lane{lane}.pcap")),
        );
        let place = &stand.lab.lanes[lane];
        let destination = linerate_wire::MacAddr(place.destination_mac()).to_string();
        if !capture.exists() {
            let template = FrameTemplate::new(&stand::frame(place), FRAME_FCS)?;
            let mut text = String::new();
            let mut writer = pcap::Writer::new(BufWriter::new(File::create(&capture)?))?;
            let mut frame = vec![0; template.len()];
            for flow in FlowSpace::benchmark(Family::V4, FLOWS)?.iter() {
                template.fill(&mut frame, &flow, None);
                writer.write(0, &frame)?;
                let bytes: Vec<String> = frame.iter().map(|b| format!("0x{b:02x}")).collect();
                writeln!(text, "{{ {} }}", bytes.join(", "))?;
            }
            writer.finish()?;
            fs::write(&config, text)?;
        }
        Ok(Inputs {
            config,
            capture,
            destination,
        })
    }
}

impl Drop for Toolbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder); // a folder in /tmp: not worth a word
    }
}

fn command(tool: Tool, namespace: &Netns, arguments: &str) -> Result<Command, Failure> {
    let program = tool.find().ok_or("is not installed")?;
    let mut command = namespace.command(program);
    command.args(arguments.split_whitespace());
    Ok(command)
}

/// Waits until enough frames have come that the load must have begun.
fn wait(session: &mut Session, frames: impl Fn() -> Result<u64, Failure>) -> Result<(), Failure> {
    let end = Instant::now() + START_WITHIN;
    while frames()? < BEGUN {
        if !session.running() {
            return Err("ended without a load".into());
        }
        if Instant::now() > end {
            return Err(format!("sent nothing within {} s", START_WITHIN.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A link with addresses on both ends.
struct Pair {
    client: Netns,
    server: Netns,
    server_index: u32,
    route: Route,
}

impl Pair {
    fn new() -> Result<Pair, Failure> {
        let client = Netns::anonymous()?.with_label("client");
        let server = Netns::anonymous()?.with_label("server");
        for namespace in [&client, &server] {
            // Without it, the link's own chatter is a handful of frames: no reason to fail.
            let _ = sysctl::set(namespace, "net/ipv6/conf/all/disable_ipv6", "1");
            let _ = sysctl::set(namespace, "net/ipv6/conf/default/disable_ipv6", "1");
        }
        let (client_route, route) = (Route::open(&client)?, Route::open(&server)?);
        let end = |name: &str, mac, index| VethEnd {
            name: name.into(),
            mac,
            mtu: 1500,
            index,
        };
        client_route.create_veth(
            &end("c0", CLIENT_MAC, 2),
            &end("s0", SERVER_MAC, 3),
            &server,
            1,
        )?;
        let (client_index, server_index) =
            (client_route.link("c0")?.index, route.link("s0")?.index);
        for (route, index, own, other, mac) in [
            (&client_route, client_index, CLIENT, SERVER, SERVER_MAC),
            (&route, server_index, SERVER, CLIENT, CLIENT_MAC),
        ] {
            route.set_up(index, true)?;
            route.add_address(index, own, 15)?;
            route.add_neighbour(index, other, mac)?;
        }
        route.wait_running(server_index, Duration::from_secs(2))?;
        Ok(Pair {
            client,
            server,
            server_index,
            route,
        })
    }

    /// Frames that have come to the server's end, by the kernel's count.
    fn received(&self) -> Result<u64, Failure> {
        Ok(self
            .route
            .link_by_index(self.server_index)?
            .stats
            .rx_packets)
    }

    /// An iperf3 server that listens.
    fn serve(&self, log: &Path) -> Result<Session, Failure> {
        let session = Session::start(
            command(Tool::Iperf3, &self.server, "-4 -s")?,
            Some(OTHER_CPU),
            log,
        )?;
        let sockets = format!("/proc/{}/net/tcp", session.id());
        let end = Instant::now() + START_WITHIN;
        // proc(5): the local address ends with port 5201 in hexadecimal, and state 0A is listening.
        while !fs::read_to_string(&sockets)?
            .lines()
            .any(|l| l.contains(":1451 ") && l.contains(" 0A "))
        {
            if Instant::now() > end {
                return Err("server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(session)
    }
}
