/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every program here needs, and nothing else: types, map definitions, the few helpers in use, header layouts and
 * the signature of a test frame. Deliberately free of kernel and libbpf headers, so that clang alone builds it.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define inline_always static inline __attribute__((always_inline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* A type of the kernel with the members in use: the loader puts in where this kernel has them (CO-RE). */
#define KERNEL_TYPE __attribute__((preserve_access_index))
#define barrier_var(x) asm volatile("" : "+r"(x))

/* User space gives a map of one entry as many as it needs; comments name the number. */
#define MAP(map, kind, key_bytes, value_bytes, entries) \
	struct { \
		int (*type)[BPF_MAP_TYPE_##kind]; \
		int (*key_size)[key_bytes]; \
		int (*value_size)[value_bytes]; \
		int (*max_entries)[entries]; \
	} map SEC(".maps")
#define ARRAY_WITH(map, of, entries, flags) \
	struct { \
		int (*type)[BPF_MAP_TYPE_ARRAY]; \
		u32 *key; \
		typeof(of) *value; \
		int (*max_entries)[entries]; \
		int (*map_flags)[flags]; \
	} map SEC(".maps")
#define ARRAY(map, of, entries) ARRAY_WITH(map, of, entries, 0)
/* An array that user space has in its memory, too. */
#define SHARED_ARRAY(map, of, entries) ARRAY_WITH(map, of, entries, BPF_F_MMAPABLE)

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_HASH 5
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_DEVMAP 14
#define BPF_MAP_TYPE_XSKMAP 17
#define BPF_F_MMAPABLE (1U << 10)
#define BPF_NOEXIST 1

enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

/* Helper numbers are kernel ABI (include/uapi/linux/bpf.h, enum bpf_func_id). */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*const bpf_redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*const bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*const bpf_loop)(u32 iterations, void *callback, void *context, u64 flags) = (void *)181;
static long (*const bpf_get_stack)(void *ctx, void *buffer, u32 size, u64 flags) = (void *)67;
static long (*const bpf_fib_lookup)(void *ctx, void *params, int plen, u32 flags) = (void *)69;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

#define swap16(x) __builtin_bswap16(x)
#define swap32(x) __builtin_bswap32(x)
#define swap64(x) __builtin_bswap64(x)

#define ETH_IPV4 0x0800
#define ETH_ARP 0x0806
#define ETH_VLAN 0x8100
#define ETH_IPV6 0x86dd
#define ETH_QINQ 0x88a8
#define PROTO_ICMP 1
#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_ICMPV6 58

/* magic "LNR1" as loaded from the wire on a little-endian machine; see crates/wire/src/signature.rs */
#define MAGIC 0x31524e4cU
#define SIGNATURE_LEN 18

struct signature {
	u32 magic;
	u16 stream;
	u16 sequence_high;
	u32 sequence_low;
	u16 time_high;
	u32 time_low;
} __attribute__((packed));

inline_always u64 signature_sequence(const struct signature *s)
{
	return (u64)swap16(s->sequence_high) << 32 | swap32(s->sequence_low);
}

inline_always u64 signature_time(const struct signature *s)
{
	return (u64)swap16(s->time_high) << 32 | swap32(s->time_low);
}

/* One's complement sum of up to 32 bits folded to 16 (RFC 1071). */
inline_always u16 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

#define TIME_BUCKETS 1280

/*
 * Log-linear: 32 buckets for each power of two, so that a time is known to 3 %. Below 32 ns, a bucket a nanosecond.
 * Keep in step with linerate_stats::histogram.
 */
inline_always u32 time_bucket(u64 ns)
{
	u32 shift = 0;

	if (ns >> 43)
		return TIME_BUCKETS - 1;
	if (ns >> 37) { ns >>= 32; shift += 32; }
	if (ns >> 21) { ns >>= 16; shift += 16; }
	if (ns >> 13) { ns >>= 8; shift += 8; }
	if (ns >> 9) { ns >>= 4; shift += 4; }
	if (ns >> 7) { ns >>= 2; shift += 2; }
	if (ns >> 6) { ns >>= 1; shift += 1; }
	return ns < 32 ? (u32)ns : shift * 32 + (u32)ns;
}
