//! The frames of a generator in user space, one after the other. generator.bpf.c makes the same: change both.

use crate::error::Error;
use linerate_wire::{
    Flow, FlowOrder, FlowPicker, FlowSpace, FrameTemplate, MILLION, Second, Signature, SourceMacs,
    SplitMix64, Traffic,
};

/// Up to this many flows are kept in a table: computing one costs several divisions.
const TABLE: u64 = 16_384;

/// The frames of one generator thread: lengths, flows, sequence numbers and stamps. Sequence numbers and flows continue from load to
/// load, as the receiver's account does.
#[derive(Debug, Clone)]
pub struct FrameSource {
    /// One for each different length.
    templates: Vec<FrameTemplate>,
    /// Indexes into `templates`.
    pattern: Vec<usize>,
    step: usize,
    flows: FlowSpace,
    table: Vec<Flow>,
    source_macs: SourceMacs,
    picker: FlowPicker,
    /// Offset of the picked flow number: sequential threads start apart.
    first_flow: u64,
    /// All frames belong to it.
    pub stream: u16,
    /// The number that the next frame gets.
    pub sequence: u64,
    stamp_every: u32,
    stamp_in: u32,
    /// The mixed IPv6 frames, their share in millionths, and the part of a frame that is due.
    second: Option<(Box<FrameSource>, u32, u32)>,
}

impl FrameSource {
    /// The frames of thread number `thread` out of `threads`.
    ///
    /// # Errors
    /// Traffic that cannot be sent.
    pub fn new(traffic: &Traffic, thread: usize, threads: usize) -> Result<Self, Error> {
        traffic.check()?;
        let flows = traffic.flows.usable_len()?;
        let (templates, pattern) = templates(traffic)?;
        let sequential = traffic.order == FlowOrder::Sequential;
        let first_flow = u64::from(flows) * thread as u64 / threads.max(1) as u64;
        let small = u64::from(flows) <= TABLE;
        let second = traffic.second().zip(traffic.ipv6.as_ref()).map(
            |(frames, Second { millionths, .. })| {
                let first_stream = frames.first_stream.wrapping_add(threads as u8);
                let source = FrameSource::new(
                    &Traffic {
                        first_stream,
                        ..frames
                    },
                    thread,
                    threads,
                )?;
                Ok::<_, Error>((Box::new(source), *millionths, 0))
            },
        );
        Ok(FrameSource {
            templates,
            pattern,
            step: 0,
            table: if small {
                traffic.flows.iter().collect()
            } else {
                Vec::new()
            },
            flows: traffic.flows.clone(),
            source_macs: traffic.source_macs,
            picker: FlowPicker::new(of_thread(traffic.order, thread), flows),
            first_flow: if sequential { first_flow } else { 0 },
            stream: traffic.stream(thread),
            sequence: 0,
            stamp_every: traffic.stamp_every.max(1),
            stamp_in: 0,
            second: second.transpose()?,
        })
    }

    /// The stream of its mixed IPv6 frames, and the number of the next one.
    pub fn second(&self) -> Option<(u16, u64)> {
        self.second
            .as_ref()
            .map(|(second, ..)| (second.stream, second.sequence))
    }

    /// Begins a load in which one frame in `stamp_every` is stamped, starting with the first.
    pub fn begin(&mut self, stamp_every: u32) {
        (self.stamp_in, self.stamp_every) = (0, stamp_every.max(1));
        if let Some((second, ..)) = &mut self.second {
            second.begin(stamp_every);
        }
    }

    /// Writes the next frame, without FCS, at the start of `buf` and returns its length. `now_ns`: the stamp, if the frame carries one.
    ///
    /// # Panics
    /// If `buf` is shorter than [`FrameSource::longest`].
    #[inline]
    pub fn fill(&mut self, buf: &mut [u8], now_ns: u64) -> usize {
        if let Some((second, millionths, due)) = &mut self.second {
            *due += *millionths;
            if *due >= MILLION {
                *due -= MILLION;
                return second.fill(buf, now_ns);
            }
        }
        let template = &self.templates[self.pattern[self.step]];
        self.step = if self.step + 1 == self.pattern.len() {
            0
        } else {
            self.step + 1
        };
        let mut flow = u64::from(self.picker.next()) + self.first_flow;
        if flow >= self.flows.len() {
            flow -= self.flows.len();
        }
        let time_ns = if self.stamp_in > 1 { 0 } else { now_ns };
        self.stamp_in = if self.stamp_in > 1 {
            self.stamp_in - 1
        } else {
            self.stamp_every
        };
        let signature = Signature {
            stream: self.stream,
            sequence: self.sequence,
            time_ns,
        };
        self.sequence += 1;
        let length = match self.table.get(flow as usize) {
            Some(flow) => template.fill(buf, flow, Some(&signature)),
            None => template.fill(buf, &self.flows.flow(flow), Some(&signature)),
        };
        if let Some(mac) = self.source_macs.of_flow(flow, self.flows.interface()) {
            buf[6..12].copy_from_slice(&mac.0);
        }
        length
    }

    /// Whether the last frame carries a stamp.
    pub fn stamped(&self) -> bool {
        self.stamp_in == self.stamp_every
    }

    /// Gives the sequence numbers of the last `frames` frames, which were never sent, to the next ones. Flows and lengths continue.
    pub fn unsent(&mut self, frames: u64) {
        let Some((second, millionths, due)) = &mut self.second else {
            self.sequence = self.sequence.saturating_sub(frames);
            return;
        };
        for _ in 0..frames {
            // Only a frame of the second kind leaves less than its share behind.
            if *due < *millionths {
                second.sequence = second.sequence.saturating_sub(1);
                *due += MILLION;
            } else {
                self.sequence = self.sequence.saturating_sub(1);
            }
            *due -= *millionths;
        }
    }

    /// The longest frame in bytes, without FCS.
    pub fn longest(&self) -> usize {
        let second = self
            .second
            .as_ref()
            .map_or(0, |(second, ..)| second.longest());
        self.templates
            .iter()
            .map(FrameTemplate::len)
            .max()
            .unwrap_or(0)
            .max(second)
    }
}

fn templates(traffic: &Traffic) -> Result<(Vec<FrameTemplate>, Vec<usize>), Error> {
    let mut templates: Vec<FrameTemplate> = Vec::new();
    let mut pattern = Vec::with_capacity(traffic.mix.pattern.len());
    for &len_fcs in &traffic.mix.pattern {
        let known = templates.iter().position(|t| t.len_fcs() == len_fcs);
        if known.is_none() {
            templates.push(FrameTemplate::new(&traffic.frame, len_fcs)?);
        }
        pattern.push(known.unwrap_or(templates.len() - 1));
    }
    Ok((templates, pattern))
}

/// The order with a seed of the thread's own.
fn of_thread(order: FlowOrder, thread: usize) -> FlowOrder {
    let own = |seed: u64| SplitMix64::new(seed.wrapping_add(thread as u64)).next_u64();
    match order {
        FlowOrder::Sequential => FlowOrder::Sequential,
        FlowOrder::Random { seed } => FlowOrder::Random { seed: own(seed) },
        FlowOrder::Zipf { exponent, seed } => FlowOrder::Zipf {
            exponent,
            seed: own(seed),
        },
    }
}

#[cfg(test)]
#[path = "frame_source_tests.rs"]
mod tests;
