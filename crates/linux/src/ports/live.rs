//! XDP live frames: the generator with the lowest cost per frame.
//!
//! `BPF_PROG_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES` runs our program on pages of the kernel's own, and the frames that it
//! redirects leave through the port's driver. One long call per CPU (each takes 13-33 ms to set up and end), ended by a signal;
//! the program itself stops sending at its deadline, whatever happens to this process.

mod programs;

use super::attached::Pass;
use super::flow_table::{Tables, fill_tables};
use super::pacer::{Pacer, together};
use super::port::{Port, Target, ThreadCounters, Worker, go_first, sum};
use crate::bpf::{self, MappedArray};
use crate::error::Error;
use crate::host::cpu::GENERATOR;
use crate::net::Netns;
use aya::Ebpf;
use aya::programs::{Program, ProgramError, TestRun, TestRunAttrs, TestRunOptions, Xdp};
use linerate_measure::counters::PortCounters;
use linerate_plan::Backend;
use linerate_wire::{FlowOrder, Load, SplitMix64, Traffic, Transport};
use programs::{load, program_name};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// `struct state` in generator.bpf.c: one per CPU.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct GeneratorState {
    duration_ns: u64,
    deadline_ns: u64,
    frames_left: u64,
    rate_mfps: u64,
    credit: u64,
    last_ns: u64,
    sequence: u64,
    flow: u64,
    random: u64,
    mix: u64,
    bytes: u64,
    first_ns: u64,
    stall_ns: u64,
    finished: u64,
    stamp_in: u64,
    stream: u32,
    target: u32,
    refused: u64,
    macs: [u8; 12],
    stamp_every: u32,
    not_before: u64,
    step_ns: u64,
    step_mfps: u64,
    back_macs: [u8; 12],
    back_target: u32,
    back_sequence: u64,
    back_bytes: u64,
    back_stream: u32,
    back: u32,
    back_flow: u64,
    broadcasts: u64,
    unicasts: u64,
    burst_left: u64,
    burst_next: u64,
    burst_period: u64,
    bursts: u64,
    bursts_ns: u64,
    burst_began: u64,
    burst_frames: u64,
    second_sequence: u64,
    second_bytes: u64,
    back_second_sequence: u64,
    back_second_bytes: u64,
    second_stream: u32,
    back_second_stream: u32,
    share: u32,
    is_second: u32,
    second_flow: u64,
    second_random: u64,
    second_mix: u64,
    pad: [u64; 2],
}

const _: () = assert!(size_of::<GeneratorState>() == 384);

/// A generator of XDP live frames on chosen CPUs.
pub struct LiveFrames {
    namespace: Netns,
    /// The generator's program, and the maps that this uses.
    ebpf: Arc<Ebpf>,
    program: String,
    states: MappedArray<GeneratorState>,
    cpus: Vec<u32>,
    traffic: Traffic,
    frame: Arc<Vec<u8>>,
    targets: Vec<Target>,
    /// Where the answers to these targets' frames go; none where frames go one way.
    back: Vec<Target>,
    aim: usize,
    /// The counters when the present run began.
    base: Vec<GeneratorState>,
    calls: Vec<Worker>,
    /// A program that the interface's driver needs.
    pass: Option<Arc<Pass>>,
}

impl LiveFrames {
    /// Keeps a program on the interface for as long as this lives.
    pub(super) fn keep(&mut self, pass: Option<Arc<Pass>>) {
        self.pass = pass;
    }

    /// See [`generator`](super::generator); all targets share one table of flows. `program`: another one of generator.bpf.c than the
    /// traffic's own. `gen_limit` redirects frames without writing them: a yardstick for benchmarks, as nothing recognises its frames.
    ///
    /// # Errors
    /// Frames too long for live frames, no privilege, a kernel without live frames (before 5.18).
    pub fn new(
        namespace: &Netns,
        targets: &[Target],
        traffic: &Traffic,
        cpus: &[u32],
        program: Option<&str>,
    ) -> Result<Self, Error> {
        Self::both(namespace, targets, None, traffic, cpus, program)
    }

    /// A generator whose every other frame is the answer to the one before it. `back`: where answers go, each from another namespace.
    /// One thread sends in both directions, so that both have the same rate.
    ///
    /// # Errors
    /// As [`new`](Self::new); frames that are not UDP.
    pub fn both(
        namespace: &Netns,
        targets: &[Target],
        back: Option<(&Netns, &[Target])>,
        traffic: &Traffic,
        cpus: &[u32],
        program: Option<&str>,
    ) -> Result<Self, Error> {
        if back.is_some() && traffic.frame.transport != Transport::Udp {
            return Err(Error::Refused("both directions need UDP".into()));
        }
        let tables = Tables::new(traffic)?;
        let second = traffic.second();
        let second = second
            .map(|traffic| Tables::new(&traffic).map(|tables| (traffic, tables)))
            .transpose()?;
        let second = second.as_ref();
        let program = program.map_or_else(|| program_name(traffic), str::to_string);
        let answers = back.map_or(&[][..], |(_, targets)| targets);
        let ports = (targets.len() + answers.len()) as u32;
        let mut ebpf = load(
            traffic,
            (&tables, second.map(|(_, tables)| tables)),
            ports,
            !answers.is_empty(),
        )?;
        // Once loaded, the program holds its maps; before, their descriptors must stay open.
        bpf::load_xdp(&mut ebpf, &program)?;
        let states = MappedArray::take(&mut ebpf, "states", bpf::possible_cpus())?;
        let all = [
            Some((traffic, &tables)),
            second.map(|(traffic, tables)| (traffic, tables)),
        ];
        fill_tables(&mut ebpf, &all.into_iter().flatten().collect::<Vec<_>>())?;
        let mut first = 0;
        for (namespace, targets) in [(namespace, targets)].into_iter().chain(back) {
            let mut numbered = (first..).zip(targets);
            namespace.run(|| {
                numbered.try_for_each(|(i, t)| bpf::set_devmap(&mut ebpf, "ports", i, t.ifindex))
            })?;
            first += targets.len() as u32;
        }
        let base: Vec<_> = (0..cpus.len())
            .map(|thread| first_state(traffic, thread, cpus.len()))
            .collect();
        cpus.iter()
            .zip(&base)
            .for_each(|(cpu, state)| states.set(*cpu as usize, *state));
        Ok(LiveFrames {
            namespace: namespace.clone(),
            ebpf: Arc::new(ebpf),
            program,
            states,
            cpus: cpus.to_vec(),
            frame: Arc::new(tables.frame),
            traffic: traffic.clone(),
            targets: targets.to_vec(),
            back: answers.to_vec(),
            aim: 0,
            base,
            calls: Vec::new(),
            pass: None,
        })
    }

    fn current(&self) -> Vec<GeneratorState> {
        self.cpus
            .iter()
            .map(|cpu| self.states.get(*cpu as usize))
            .collect()
    }

    /// Whether a thread has ended without a request.
    fn has_died(&self) -> bool {
        self.calls.iter().any(Worker::has_ended)
    }

    /// Waits for calls that are still being ended.
    fn join(&mut self) -> Result<(), Error> {
        end_calls(&mut self.calls)
    }

    fn spawn(&self, cpu: u32, batch: u32) -> Result<Worker, Error> {
        handle_signal();
        let (namespace, ebpf) = (self.namespace.clone(), Arc::clone(&self.ebpf));
        let (program, frame) = (self.program.clone(), Arc::clone(&self.frame));
        Worker::spawn(format!("{GENERATOR}{cpu}"), Some(cpu), move |stop| {
            // Other programs on this CPU get the rest of its time: otherwise theirs would count as cost per frame.
            go_first();
            namespace.current_thread_enter()?;
            let Some(Program::Xdp(program)) = ebpf.program(&program) else {
                return Ok(());
            };
            while !stop.load(Ordering::Relaxed) {
                run_live(program, &frame, u32::MAX >> 1, batch)?;
            }
            Ok(())
        })
    }
}

/// Requests the end of calls whose program sends nothing any more. It takes the kernel some 20 ms, in which the trial can go on: threads
/// that have ended have no CPU time to be read. [`end_calls`] waits for them.
pub(super) fn let_end(calls: &[Worker]) {
    for call in calls {
        call.tell_to_stop();
        call.interrupt();
    }
    // A frame that was being written when the program was told to finish is handed over with its batch.
    std::thread::sleep(Duration::from_micros(100));
}

/// Ends calls and waits for them. A signal that comes before a call has begun is lost: repeat it.
pub(super) fn end_calls(calls: &mut Vec<Worker>) -> Result<(), Error> {
    let mut result = Ok(());
    for mut call in calls.drain(..) {
        call.tell_to_stop();
        while !call.has_ended() {
            call.interrupt();
            std::thread::sleep(Duration::from_micros(200));
        }
        result = result.and(call.join());
    }
    result
}

/// Ethernet addresses as a frame has them.
pub(super) fn addresses(target: &Target) -> [u8; 12] {
    let mut macs = [0; 12];
    macs[..6].copy_from_slice(&target.destination.0);
    macs[6..].copy_from_slice(&target.source.0);
    macs
}

/// Stream, flow and random numbers of a thread; they go on from trial to trial.
fn first_state(traffic: &Traffic, thread: usize, threads: usize) -> GeneratorState {
    let seed = match traffic.order {
        FlowOrder::Sequential => 0,
        FlowOrder::Random { seed } | FlowOrder::Zipf { seed, .. } => seed,
    };
    let flow = traffic.flows.len() * thread as u64 / threads as u64;
    let random = SplitMix64::new(seed.wrapping_add(thread as u64)).next_u64();
    GeneratorState {
        flow,
        random,
        second_flow: flow,
        second_random: random,
        stream: traffic.stream(thread).into(),
        second_stream: traffic.stream(threads + thread).into(),
        back_stream: traffic
            .stream(traffic.streams_each() * threads + thread)
            .into(),
        back_second_stream: traffic.stream(3 * threads + thread).into(),
        unicasts: u64::from(traffic.broadcast_every).saturating_sub(1),
        ..GeneratorState::default()
    }
}

impl Port for LiveFrames {
    fn backend(&self) -> Backend {
        Backend::Xdp
    }

    fn aim(&mut self, target: usize) {
        assert!(
            target < self.targets.len(),
            "a target that the generator was made for"
        );
        self.aim = target;
    }

    fn start(&mut self, load: &Load) -> Result<(), Error> {
        self.join()?;
        let target = self.targets[self.aim];
        let back = self.back.get(self.aim);
        // Rate and number of frames are those of each direction.
        let ways = if back.is_some() { 2 } else { 1 };
        let load = &together(&load.times(ways), &self.traffic, self.cpus.len());
        // One thread's frames take turns: an odd distance stamps those of both directions.
        let takes_turns = back.is_some() || self.traffic.ipv6.is_some();
        let stamp_every = self.traffic.stamp_every_of(load) | u32::from(takes_turns);
        for (thread, cpu) in self.cpus.iter().enumerate() {
            let of_all = (thread, self.cpus.len());
            let pacer =
                Pacer::new(load, thread, of_all.1).in_bursts(load, &self.traffic, ways, of_all);
            let Pacer {
                rate_mfps,
                frames_left,
                step,
                burst,
                ..
            } = pacer;
            let (step_ns, step_mfps) = step.unwrap_or((u64::MAX, 0));
            // Numbers of streams, flows and random numbers go on; what belongs to a load begins again.
            let known = self.states.get(*cpu as usize);
            let state = GeneratorState {
                duration_ns: load.duration_ns,
                deadline_ns: 0,
                frames_left,
                rate_mfps,
                credit: 0,
                last_ns: 0,
                first_ns: 0,
                stall_ns: 0,
                finished: 0,
                stamp_in: 0,
                target: self.aim as u32,
                macs: addresses(&target),
                back_macs: back.map_or([0; 12], addresses),
                back_target: (self.targets.len() + self.aim) as u32,
                back: 0,
                back_flow: 0,
                not_before: load.not_before_ns,
                stamp_every,
                step_ns,
                step_mfps,
                burst_left: if burst.is_some() { 0 } else { u64::MAX },
                burst_next: 0,
                burst_period: burst.map_or(0, |burst| burst.period),
                burst_frames: burst.map_or(0, |burst| burst.frames),
                bursts: 0,
                bursts_ns: 0,
                burst_began: 0,
                share: 0,
                is_second: 0,
                ..known
            };
            self.states.set(*cpu as usize, state);
        }
        self.base = self.current();
        for cpu in &self.cpus {
            self.calls.push(self.spawn(*cpu, load.batch)?);
        }
        Ok(())
    }

    fn threads(&self) -> Vec<ThreadCounters> {
        let (both, second) = (!self.back.is_empty(), self.traffic.ipv6.is_some());
        let thread =
            |(nth, ((now, base), cpu)): (usize, ((GeneratorState, &GeneratorState), &u32))| {
                let bytes_of = |frames: u64, counted: u64| match self.traffic.mix.pattern.len() {
                    1 => frames * self.frame.len() as u64,
                    _ => counted,
                };
                let frames = now.sequence - base.sequence;
                let forward = ThreadCounters {
                    cpu: *cpu,
                    queue: *cpu,
                    stream: now.stream as u16,
                    frames,
                    bytes: bytes_of(frames, now.bytes - base.bytes),
                    refused: now.refused - base.refused,
                    broadcasts: now.broadcasts - base.broadcasts,
                    // All threads send a part of each burst.
                    bursts: if nth == 0 {
                        (now.bursts, now.bursts_ns)
                    } else {
                        (0, 0)
                    },
                    next_sequence: now.sequence,
                    first_ns: now.first_ns,
                    last_ns: now.last_ns,
                    stall_ns: now.stall_ns,
                    finished: now.finished != 0,
                    reverse: false,
                    ipv6: false,
                };
                let reverse = ThreadCounters {
                    stream: now.back_stream as u16,
                    frames: now.back_sequence - base.back_sequence,
                    bytes: now.back_bytes - base.back_bytes,
                    refused: 0,
                    next_sequence: now.back_sequence,
                    reverse: true,
                    ..forward
                };
                let of_second =
                    |way: ThreadCounters, stream: u32, [now, base]: [u64; 2], bytes: u64| {
                        ThreadCounters {
                            bytes,
                            ..way.of_second(stream as u16, now - base, now)
                        }
                    };
                let numbers = [now.second_sequence, base.second_sequence];
                let bytes = now.second_bytes - base.second_bytes;
                let forward6 = of_second(forward, now.second_stream, numbers, bytes);
                let numbers = [now.back_second_sequence, base.back_second_sequence];
                let bytes = now.back_second_bytes - base.back_second_bytes;
                let reverse6 = of_second(reverse, now.back_second_stream, numbers, bytes);
                [
                    (true, forward),
                    (second, forward6),
                    (both, reverse),
                    (both && second, reverse6),
                ]
            };
        let threads = self
            .current()
            .into_iter()
            .zip(&self.base)
            .zip(&self.cpus)
            .enumerate();
        threads
            .flat_map(thread)
            .filter(|(there, _)| *there)
            .map(|(_, counters)| counters)
            .collect()
    }

    fn directions(&self) -> Vec<PortCounters> {
        let threads = self.threads();
        let of = |reverse| {
            sum(
                threads.iter().filter(|thread| thread.reverse == reverse),
                self.active_ns(),
            )
        };
        if self.back.is_empty() {
            vec![of(false)]
        } else {
            vec![of(false), of(true)]
        }
    }

    fn frames_each(&self) -> Option<[u64; 2]> {
        let each = |(now, base): (GeneratorState, &GeneratorState)| {
            let forward = now.sequence - base.sequence + now.second_sequence - base.second_sequence;
            let back = now.back_sequence - base.back_sequence;
            [
                forward,
                back + now.back_second_sequence - base.back_second_sequence,
            ]
        };
        let sum = |all: [u64; 2], one: [u64; 2]| [all[0] + one[0], all[1] + one[1]];
        (!self.back.is_empty()).then(|| {
            self.current()
                .into_iter()
                .zip(&self.base)
                .map(each)
                .fold([0; 2], sum)
        })
    }

    fn finished(&self) -> bool {
        self.has_died() || self.current().iter().all(|s| s.finished != 0)
    }

    fn stop(&mut self) -> Result<(), Error> {
        for cpu in &self.cpus {
            self.states.set_field(
                *cpu as usize,
                std::mem::offset_of!(GeneratorState, finished),
                1,
            );
        }
        if self.has_died() {
            return self.join(); // say why
        }
        let_end(&self.calls);
        Ok(())
    }
}

impl Drop for LiveFrames {
    fn drop(&mut self) {
        // An error has been reported by `stop`, or the load never mattered.
        let _ = self.join();
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// A handler that does nothing makes SIGURG interrupt BPF_PROG_RUN (an ignored signal would not).
pub(super) fn handle_signal() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is async-signal-safe (it does nothing), the struct is zeroed plain data.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            libc::sigaction(libc::SIGURG, &action, std::ptr::null_mut());
        }
    });
}

/// One call; returns when it is interrupted or its repetitions are used up.
pub(super) fn run_live(program: &Xdp, frame: &[u8], repeat: u32, batch: u32) -> Result<(), Error> {
    let options = TestRunOptions {
        data_in: Some(frame),
        repeat,
        attrs: TestRunAttrs::new().xdp_live_frames(batch),
        ..TestRunOptions::new()
    };
    match program.test_run(options) {
        Ok(_) => Ok(()),
        Err(ProgramError::SyscallError(e)) if e.io_error.raw_os_error() == Some(libc::EINTR) => {
            Ok(())
        }
        Err(ProgramError::SyscallError(e)) => {
            Err(Error::system("run live frames (BPF_PROG_RUN)", e.io_error))
        }
        Err(error) => Err(bpf::program_error("generator", &error)),
    }
}
