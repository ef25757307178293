//! An AF_XDP socket with frame memory (UMEM) of its own, bound to one queue of one interface.
//!
//! The socket's rings are memory that this process and the kernel share, without locks and mostly without calls.
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

use crate::error::{Doing, Error};
use crate::sockets::{Mapping, new_socket};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags, XdpRingOffset,
    XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, bind, recv, send};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a queue may still be busy with a socket that has just been closed.
const BUSY: Duration = Duration::from_secs(5);

/// The fewest chunks that are worth a socket.
const FEWEST_CHUNKS: u32 = 64;

/// The memory that frames stand in: chunks of equal size. The kernel names a place in it by its offset.
pub(super) struct Umem {
    memory: Mapping,
    chunk: u32,
    chunks: u32,
}

impl Umem {
    /// Addresses of all chunks.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let chunk = u64::from(self.chunk);
        (0..u64::from(self.chunks)).map(move |i| i * chunk)
    }

    /// Bytes at an address that the kernel named; empty outside our memory.
    pub(super) fn bytes(&mut self, address: u64, len: usize) -> &mut [u8] {
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        if start
            .checked_add(len)
            .is_none_or(|end| end > self.memory.len())
        {
            return &mut [];
        }
        // SAFETY: inside the mapping, as just checked. The caller has got the chunk out of the rx or completion ring (or never
        // put it in another), so the kernel does not touch it; `&mut self` excludes all other users.
        unsafe { std::slice::from_raw_parts_mut(self.memory.base().add(start), len) }
    }

    /// The whole chunk at an address.
    pub(super) fn chunk(&mut self, address: u64) -> &mut [u8] {
        self.bytes(address, self.chunk as usize)
    }

    /// The address of the chunk that an address is in: frames are received behind some headroom.
    pub(super) fn chunk_of(&self, address: u64) -> u64 {
        address - address % u64::from(self.chunk)
    }
}

/// The socket. `frames` is its ring of frames: rx, which goes with `fill`, or tx, which goes with `completion`; the kernel wants fill
/// and completion rings of every socket.
pub(super) struct Socket<R> {
    pub(super) frames: R,
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
    pub(super) umem: Umem,
    pub(super) zero_copy: bool,
    pub(super) fd: Arc<OwnedFd>,
}

/// A direction: what makes the ring of frames.
struct Direction<R> {
    receives: bool,
    ring: fn(Arc<Mapping>, &XdpRingOffset, u32) -> R,
}

/// A socket that receives.
pub(super) type Receiving = Socket<Consumer<libc::xdp_desc>>;
/// A socket that transmits.
pub(super) type Transmitting = Socket<Producer<libc::xdp_desc>>;

impl Receiving {
    /// See [`Socket::open`].
    pub(super) fn receiving(
        ifindex: u32,
        queue: u32,
        chunk: u32,
        chunks: u32,
    ) -> Result<Self, Error> {
        Self::open(
            ifindex,
            queue,
            chunk,
            chunks,
            Direction {
                receives: true,
                ring: Consumer::new,
            },
        )
    }

    /// Lets the kernel receive, by a call that moves no data itself.
    pub(super) fn kick(&self) -> io::Result<()> {
        Ok(recv(&self.fd, &mut [0; 0], RecvFlags::DONTWAIT).map(drop)?)
    }
}

impl Transmitting {
    /// See [`Socket::open`].
    pub(super) fn transmitting(
        ifindex: u32,
        queue: u32,
        chunk: u32,
        chunks: u32,
    ) -> Result<Self, Error> {
        Self::open(
            ifindex,
            queue,
            chunk,
            chunks,
            Direction {
                receives: false,
                ring: Producer::new,
            },
        )
    }

    /// Lets the kernel send, likewise.
    pub(super) fn kick(&self) -> io::Result<()> {
        Ok(send(&self.fd, &[], SendFlags::DONTWAIT).map(drop)?)
    }
}

/// Frames that were dropped because a socket had no room for them, since it was made.
pub(super) fn dropped(fd: &OwnedFd) -> u64 {
    // An empty fill ring is in `rx_dropped` as well (net/xdp/xsk.c, __xsk_rcv).
    sockopt::xdp_statistics(fd).map_or(0, |s| s.rx_dropped + s.rx_ring_full.unwrap_or(0))
}

impl<R> Socket<R> {
    /// A socket on queue `queue` of the interface `ifindex`, in the namespace of the calling thread, with up to `chunks`
    /// chunks (a power of two) of `chunk` bytes: half as many, and so on, if no more memory may be locked.
    fn open(
        ifindex: u32,
        queue: u32,
        chunk: u32,
        chunks: u32,
        way: Direction<R>,
    ) -> Result<Self, Error> {
        let object = format!("an AF_XDP socket on queue {queue} of interface number {ifindex}");
        let fd =
            new_socket(AddressFamily::XDP, SocketType::RAW).doing(format_args!("open {object}"))?;
        let umem = register(&fd, chunk, chunks).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOBUFS) => Error::Refused(format!(
                "{object} would need more locked memory than the limit (ulimit -l) allows: raise it, ask for fewer CPUs, or use \
                 --backend af-packet"
            )),
            _ => Error::system(format_args!("give memory to {object}"), error),
        })?;
        let socket = rings(fd, umem, way).doing(format_args!("make the rings of {object}"))?;
        bind_to_queue(&socket.fd, ifindex, queue).map_err(|error| match error {
            Errno::INVAL => Error::Refused(format!(
                "interface number {ifindex} has no queue {queue}: ask for fewer CPUs, or give it more queues (ethtool -L)"
            )),
            _ => Error::system(format_args!("bind {object}"), error),
        })?;
        let options = sockopt::xdp_options(&socket.fd);
        let zero_copy =
            options.is_ok_and(|flags| flags.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY));
        Ok(Socket {
            zero_copy,
            ..socket
        })
    }
}

/// XDP_UMEM_REG. Its pages are locked: without CAP_IPC_LOCK, RLIMIT_MEMLOCK (often 8 MiB) holds for all of a user's. Those of
/// a socket that has just been closed count for a while; after that, less has to do.
fn register(fd: &OwnedFd, chunk: u32, mut chunks: u32) -> io::Result<Umem> {
    let until = Instant::now() + Duration::from_secs(1);
    loop {
        let memory = Mapping::anonymous(chunk as usize * chunks as usize)?;
        let request = XdpUmemReg {
            addr: memory.base() as u64,
            len: memory.len() as u64,
            chunk_size: chunk,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        match sockopt::set_xdp_umem_reg(fd, request) {
            Ok(()) => {
                return Ok(Umem {
                    memory,
                    chunk,
                    chunks,
                });
            }
            Err(Errno::NOBUFS) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20))
            }
            Err(Errno::NOBUFS) if chunks > FEWEST_CHUNKS => chunks /= 2,
            Err(e) => return Err(e.into()),
        }
    }
}

/// Sizes the rings and maps them: each at its own offset, its parts at those of XDP_MMAP_OFFSETS.
fn rings<R>(fd: OwnedFd, umem: Umem, way: Direction<R>) -> io::Result<Socket<R>> {
    let all = umem.chunks;
    // The kernel takes many chunks out of the fill ring before it updates the shared counter: until then those count twice,
    // there and where their frames have gone. With twice the room, giving a chunk back never finds the ring full.
    let [fill, completion] = if way.receives {
        [2 * all, FEWEST_CHUNKS]
    } else {
        [FEWEST_CHUNKS, all]
    };
    sockopt::set_xdp_umem_fill_ring_size(&fd, fill)?;
    sockopt::set_xdp_umem_completion_ring_size(&fd, completion)?;
    match way.receives {
        true => sockopt::set_xdp_rx_ring_size(&fd, all)?,
        false => sockopt::set_xdp_tx_ring_size(&fd, all)?,
    }
    let offsets = sockopt::xdp_mmap_offsets(&fd)?;
    let map = |ring: &XdpRingOffset, entry: usize, size: u32, at: u64| {
        Mapping::shared(&fd, ring.desc as usize + size as usize * entry, at).map(Arc::new)
    };
    let (parts, at) = if way.receives {
        (&offsets.rx, XDP_PGOFF_RX_RING)
    } else {
        (&offsets.tx, XDP_PGOFF_TX_RING)
    };
    let address = size_of::<u64>();
    let frames = map(parts, size_of::<libc::xdp_desc>(), all, at)?;
    let filled = map(&offsets.fr, address, fill, XDP_UMEM_PGOFF_FILL_RING)?;
    let done = map(
        &offsets.cr,
        address,
        completion,
        XDP_UMEM_PGOFF_COMPLETION_RING,
    )?;
    Ok(Socket {
        frames: (way.ring)(frames, parts, all),
        fill: Producer::new(filled, &offsets.fr, fill),
        completion: Consumer::new(done, &offsets.cr, completion),
        umem,
        zero_copy: false,
        fd: Arc::new(fd),
    })
}

/// Binds; without XDP_COPY or XDP_ZEROCOPY the kernel takes zero copy where the driver has it. A queue stays busy for up to
/// a second after its last socket was closed, because the kernel tears that down later.
fn bind_to_queue(fd: &OwnedFd, ifindex: u32, queue: u32) -> Result<(), Errno> {
    let address = SocketAddrXdp::new(SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP, ifindex, queue);
    let until = Instant::now() + BUSY;
    loop {
        match bind(fd, &address) {
            Err(Errno::BUSY) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20))
            }
            result => return result,
        }
    }
}

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
        let [producer, consumer, flags, entries] = [
            offsets.producer,
            offsets.consumer,
            offsets.flags.unwrap_or(0),
            offsets.desc,
        ]
        .map(|o| o as usize);
        assert!(size.is_power_of_two(), "ring sizes are powers of two");
        assert!(
            [producer, consumer, flags]
                .iter()
                .all(|o| o % 4 == 0 && o + 4 <= memory.len())
        );
        assert!(
            entries % align_of::<T>() == 0
                && entries + size as usize * size_of::<T>() <= memory.len()
        );
        Ring {
            memory,
            producer,
            consumer,
            flags,
            entries,
            size,
            _entry: std::marker::PhantomData,
        }
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
    fn new(memory: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        let ring = Ring::new(memory, offsets, size);
        let written = ring.counter(ring.producer).load(Ordering::Relaxed);
        let taken = ring.counter(ring.consumer).load(Ordering::Acquire);
        Producer {
            ring,
            written,
            taken,
        }
    }

    /// How many entries there is room for; the other side is asked only if it seems to be less than `wanted`.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let room = |p: &Self| p.ring.size - p.written.wrapping_sub(p.taken);
        if room(self) < wanted {
            self.taken = self
                .ring
                .counter(self.ring.consumer)
                .load(Ordering::Acquire);
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
        self.ring
            .counter(self.ring.producer)
            .store(self.written, Ordering::Release);
    }

    /// How many entries the other side has not taken yet.
    pub(super) fn pending(&mut self) -> u32 {
        self.taken = self
            .ring
            .counter(self.ring.consumer)
            .load(Ordering::Acquire);
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
    fn new(memory: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        let ring = Ring::new(memory, offsets, size);
        let read = ring.counter(ring.consumer).load(Ordering::Relaxed);
        Consumer {
            ring,
            read,
            filled: read,
        }
    }

    /// The next entry, if there is one; its place stays ours until [`release`](Self::release).
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.filled {
            self.filled = self
                .ring
                .counter(self.ring.producer)
                .load(Ordering::Acquire);
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
        self.ring
            .counter(self.ring.consumer)
            .store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(size: u32) -> (Producer<u64>, Consumer<u64>) {
        let memory = Arc::new(Mapping::anonymous(4096).unwrap());
        let offsets = XdpRingOffset {
            producer: 0,
            consumer: 64,
            flags: Some(128),
            desc: 192,
        };
        // Counters that are about to wrap.
        let near = u32::MAX - 100;
        for at in [0, 64] {
            // SAFETY: inside the page, aligned, and not shared yet.
            unsafe { memory.base().add(at).cast::<u32>().write(near) };
        }
        (
            Producer::new(memory.clone(), &offsets, size),
            Consumer::new(memory, &offsets, size),
        )
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
        assert_eq!(
            [consumer.pop(), consumer.pop(), consumer.pop()],
            [Some(2), Some(3), None]
        );
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
