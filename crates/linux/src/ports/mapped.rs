//! A BPF array mapped into this process: counters are read, and tables filled, without a system call.

use super::PortError;
use aya::maps::{Map, MapData};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A `BPF_MAP_TYPE_ARRAY` with `BPF_F_MMAPABLE`, as elements of `T`, which the kernel side reads and writes at the same
/// time: elements are copied out and in with volatile accesses, and each of their words is written by one side only.
pub struct MappedArray<T: Copy> {
    base: NonNull<T>,
    len: usize,
    bytes: usize,
    map: MapData,
}

// SAFETY: the mapping is shared memory that lives as long as the value; accesses are volatile copies.
unsafe impl<T: Copy + Send> Send for MappedArray<T> {}
// SAFETY: as above; `set` from several threads writes whole elements that these threads do not share.
unsafe impl<T: Copy + Send> Sync for MappedArray<T> {}

impl<T: Copy> MappedArray<T> {
    /// Maps `len` elements of a map named `name`.
    ///
    /// # Errors
    /// The map is no array, or the kernel refuses to map it.
    pub fn new(name: &str, map: Map, len: usize) -> Result<Self, PortError> {
        assert_eq!(size_of::<T>() % 8, 0, "array elements are rounded up to 8 bytes");
        let Map::Array(map) = map else {
            return Err(PortError::Unsuitable(format!("map {name} is not an array")));
        };
        let page = 4096;
        let bytes = (len * size_of::<T>()).next_multiple_of(page);
        let fd = map.fd().as_fd().as_raw_fd();
        // SAFETY: a fresh mapping chosen by the kernel; the result is checked below.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(PortError::system("map", format!("BPF array {name}"))(io::Error::last_os_error()));
        }
        let base = NonNull::new(base.cast()).expect("mmap does not return null");
        Ok(MappedArray { base, len, bytes, map })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A copy of element `index`; panics beyond the end.
    pub fn get(&self, index: usize) -> T {
        assert!(index < self.len);
        // SAFETY: within the mapping, aligned because mmap returns page-aligned memory; T is plain data.
        unsafe { self.base.as_ptr().add(index).read_volatile() }
    }

    /// Replaces element `index`; panics beyond the end.
    pub fn set(&self, index: usize, value: T) {
        assert!(index < self.len);
        // SAFETY: as in `get`.
        unsafe { self.base.as_ptr().add(index).write_volatile(value) }
    }

    /// Sets one 64-bit field of element `index`, at `offset` bytes, and touches nothing else of it: for fields that user
    /// space changes while the kernel side is at work on the others. Panics beyond the end.
    pub fn set_field(&self, index: usize, offset: usize, value: u64) {
        assert!(index < self.len && offset.is_multiple_of(8) && offset + 8 <= size_of::<T>());
        // SAFETY: within the element, and aligned because elements are multiples of 8 bytes.
        unsafe { self.base.as_ptr().add(index).cast::<u8>().add(offset).cast::<u64>().write_volatile(value) }
    }

    /// Copies of all elements.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// The map itself.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.map.fd().as_fd()
    }
}

impl<T: Copy> Drop for MappedArray<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` and is not used any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
