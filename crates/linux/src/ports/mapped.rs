//! A BPF array mapped into this process: counters are read, and tables filled, without a system call.

use crate::error::{Doing, Error};
use crate::sockets::Mapping;
use aya::Ebpf;
use aya::maps::{Map, MapData};
use std::marker::PhantomData;

/// A `BPF_MAP_TYPE_ARRAY` with `BPF_F_MMAPABLE`, as elements of `T`, which the kernel side reads and writes at the same
/// time: elements are copied out and in with volatile accesses, and each of their words is written by one side only.
pub struct MappedArray<T: Copy> {
    memory: Mapping,
    len: usize,
    _map: MapData,
    _elements: PhantomData<T>,
}

impl<T: Copy> MappedArray<T> {
    /// Takes the map `name` out of an object and maps `len` elements of it.
    ///
    /// # Errors
    /// There is no such array, or the kernel refuses to map it.
    pub fn take(ebpf: &mut Ebpf, name: &str, len: usize) -> Result<Self, Error> {
        assert_eq!(size_of::<T>() % 8, 0, "array elements are rounded up to 8 bytes");
        let Some(Map::Array(map)) = ebpf.take_map(name) else {
            return Err(Error::Refused(format!("there is no BPF array '{name}'")));
        };
        let bytes = (len * size_of::<T>()).next_multiple_of(4096);
        let memory = Mapping::shared(map.fd(), bytes, 0);
        let memory = memory.doing(format_args!("map BPF array {name}"))?;
        Ok(MappedArray { memory, len, _map: map, _elements: PhantomData })
    }

    fn element(&self, index: usize) -> *mut T {
        assert!(index < self.len);
        self.memory.base().cast::<T>().wrapping_add(index)
    }

    /// A copy of element `index`; panics beyond the end.
    pub fn get(&self, index: usize) -> T {
        // SAFETY: within the mapping, aligned because mmap returns page-aligned memory; T is plain data.
        unsafe { self.element(index).read_volatile() }
    }

    /// Replaces element `index`; panics beyond the end.
    pub fn set(&self, index: usize, value: T) {
        // SAFETY: as in `get`.
        unsafe { self.element(index).write_volatile(value) }
    }

    /// Replaces the first elements.
    pub fn fill(&self, values: &[T]) {
        values.iter().enumerate().for_each(|(index, value)| self.set(index, *value));
    }

    /// Sets one 64-bit field of element `index`, at `offset` bytes, and touches nothing else of it: for fields that user
    /// space changes while the kernel side is at work on the others. Panics beyond the end.
    pub fn set_field(&self, index: usize, offset: usize, value: u64) {
        assert!(offset.is_multiple_of(8) && offset + 8 <= size_of::<T>());
        // SAFETY: within the element, and aligned because elements are multiples of 8 bytes.
        unsafe { self.element(index).byte_add(offset).cast::<u64>().write_volatile(value) }
    }

    /// Copies of all elements.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len).map(|i| self.get(i))
    }
}
