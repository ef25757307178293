//! The rings of an AF_XDP socket: memory that this process and the kernel share, without locks and mostly without calls.
//!
//! A socket has up to four, each an array of entries whose size is a power of two, and two counters that only ever grow (and wrap
//! at 2^32): `producer`, how many entries have been put in, and `consumer`, how many have been taken out. Counter modulo size is
//! the place in the array; their difference is the number of entries in it.
//!
//! | ring | from | to | entry |
//! |---|---|---|---|
//! | fill | us | kernel | address of a chunk that it may receive into |
//! | rx | kernel | us | address and length of a frame that arrived |
//! | tx | us | kernel | address and length of a frame to send |
//! | completion | kernel | us | address of a chunk whose frame has been sent |
//!
//! Each counter has one writer. The producer writes entries, then stores `producer` with release; the consumer loads it with
//! acquire and so sees the entries. The consumer reads entries, then stores `consumer` with release; the producer loads it with
//! acquire before it writes over them. Both keep the other's counter as last seen and look again only when that is used up,
//! because the line has to come from another core (Documentation/networking/af_xdp.rst).

use crate::sockets::Mapping;
use rustix::net::xdp::XdpRingOffset;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Part of a ring that both ends have.
struct Ring<T> {
    memory: Arc<Mapping>,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    size: u32,
    _entry: std::marker::PhantomData<fn() -> T>,
}

impl<T: Copy> Ring<T> {
    fn new(memory: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        let [producer, consumer, flags, entries] =
            [offsets.producer, offsets.consumer, offsets.flags.unwrap_or(0), offsets.desc]
                .map(|o| o as usize);
        assert!(size.is_power_of_two(), "ring sizes are powers of two");
        assert!([producer, consumer, flags].iter().all(|o| o % 4 == 0 && o + 4 <= memory.len()));
        assert!(entries % align_of::<T>() == 0 && entries + size as usize * size_of::<T>() <= memory.len());
        Ring { memory, producer, consumer, flags, entries, size, _entry: std::marker::PhantomData }
    }

    fn counter(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: `new` has checked that the word is inside the mapping and aligned (mappings start at a page); it lives
        // as long as `self`, and all sides use it as one atomic word.
        unsafe { AtomicU32::from_ptr(self.memory.base().add(offset).cast()) }
    }

    fn entry(&self, index: u32) -> *mut T {
        let place = (index & (self.size - 1)) as usize;
        // SAFETY: place < size, and `new` has checked that this number of entries is inside the mapping.
        unsafe { self.memory.base().add(self.entries).cast::<T>().add(place) }
    }

    /// Whether the kernel sleeps and needs a wakeup (XDP_USE_NEED_WAKEUP).
    fn needs_wakeup(&self) -> bool {
        self.counter(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The end of a fill or tx ring that puts entries in.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// How many we have written; the shared counter follows with `submit`.
    written: u32,
    /// The consumer's counter, as last seen.
    taken: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn new(memory: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        let ring = Ring::new(memory, offsets, size);
        let written = ring.counter(ring.producer).load(Ordering::Relaxed);
        let taken = ring.counter(ring.consumer).load(Ordering::Acquire);
        Producer { ring, written, taken }
    }

    /// How many entries there is room for; the other side is asked only if it seems to be less than `wanted`.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let room = |p: &Self| p.ring.size - p.written.wrapping_sub(p.taken);
        if room(self) < wanted {
            self.taken = self.ring.counter(self.ring.consumer).load(Ordering::Acquire);
        }
        room(self)
    }

    /// Writes an entry, which the other side does not see before [`submit`](Self::submit).
    ///
    /// # Panics
    /// If there is no room.
    pub(super) fn push(&mut self, entry: T) {
        assert!(self.room(1) > 0, "no room in the ring");
        // SAFETY: a valid place, and not in use by the consumer: there is room.
        unsafe { self.ring.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
    }

    /// Hands over all that was written.
    pub(super) fn submit(&mut self) {
        self.ring.counter(self.ring.producer).store(self.written, Ordering::Release);
    }

    /// How many entries the other side has not taken yet.
    pub(super) fn pending(&mut self) -> u32 {
        self.taken = self.ring.counter(self.ring.consumer).load(Ordering::Acquire);
        self.written.wrapping_sub(self.taken)
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The end of a completion or rx ring that takes entries out.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// How many we have read; the shared counter follows with `release`.
    read: u32,
    /// The producer's counter, as last seen.
    filled: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn new(memory: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        let ring = Ring::new(memory, offsets, size);
        let read = ring.counter(ring.consumer).load(Ordering::Relaxed);
        Consumer { ring, read, filled: read }
    }

    /// The next entry, if there is one; its place stays ours until [`release`](Self::release).
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.filled {
            self.filled = self.ring.counter(self.ring.producer).load(Ordering::Acquire);
        }
        if self.read == self.filled {
            return None;
        }
        // SAFETY: a valid place; the producer has filled it, and does not touch it before our counter passes it.
        let entry = unsafe { self.ring.entry(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(entry)
    }

    /// Gives back the places of all that was read.
    pub(super) fn release(&mut self) {
        self.ring.counter(self.ring.consumer).store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(size: u32) -> (Producer<u64>, Consumer<u64>) {
        let memory = Arc::new(Mapping::anonymous(4096).unwrap());
        let offsets = XdpRingOffset { producer: 0, consumer: 64, flags: Some(128), desc: 192 };
        // Counters that are about to wrap.
        let near = u32::MAX - 100;
        for at in [0, 64] {
            // SAFETY: inside the page, aligned, and not shared yet.
            unsafe { memory.base().add(at).cast::<u32>().write(near) };
        }
        (Producer::new(memory.clone(), &offsets, size), Consumer::new(memory, &offsets, size))
    }

    #[test]
    fn entries_appear_when_submitted_and_room_when_released() {
        let (mut producer, mut consumer) = ends(4);
        assert_eq!((producer.room(4), consumer.pop()), (4, None));
        (0..4).for_each(|i| producer.push(i));
        assert_eq!((producer.room(1), consumer.pop()), (0, None));
        producer.submit();
        assert_eq!([consumer.pop(), consumer.pop()], [Some(0), Some(1)]);
        assert_eq!((producer.room(1), producer.pending()), (0, 4));
        consumer.release();
        assert_eq!((producer.room(1), producer.pending()), (2, 2));
        assert_eq!([consumer.pop(), consumer.pop(), consumer.pop()], [Some(2), Some(3), None]);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let (mut producer, mut consumer) = ends(16);
        let thread = std::thread::spawn(move || {
            for i in 0..100_000 {
                while producer.room(1) == 0 {
                    std::hint::spin_loop();
                    std::thread::yield_now();
                }
                producer.push(i);
                producer.submit();
            }
        });
        for i in 0..100_000 {
            let entry = loop {
                match consumer.pop() {
                    Some(entry) => break entry,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(entry, i);
            consumer.release();
        }
        thread.join().unwrap();
    }
}
