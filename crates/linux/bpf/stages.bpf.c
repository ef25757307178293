/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Follows one frame in EVERY through the stack and keeps histograms of the times between the tracepoints that it passes.
 *
 * A followed frame has a slot, found by the address of its buffer. A buffer that comes in again is another frame, so a frame
 * that was dropped or merged leaves nothing behind; at worst its slot is taken by the next one.
 */
#include "kernel.h"

/* A prime: the frames that are followed have all places in a batch. */
#define EVERY 61
#define SLOTS 4096

/* Keep in step with telemetry/stages.rs. */
enum point { ENTRY, RECEIVE, LOOKUP, QUEUE, START, SENT, POINTS };
/* Histograms: of each step from a point to another, and of the way from entry to the last start. */
#define WHOLE (POINTS * POINTS)

struct flowi4 {
	u32 daddr;
} KERNEL_TYPE;

struct flowi6 {
	struct {
		u64 words[2];
	} daddr;
} KERNEL_TYPE;

struct frame {
	u64 skb;      /* its number, see number_of */
	u64 entered;
	u64 last;     /* time of the last point */
	u32 point;
	u32 whole;    /* bucket of the way until now, plus one; 0 before it is sent */
	u64 routed[2]; /* destination, until its route was looked up */
};

MAP(frames, ARRAY, 4, sizeof(struct frame), SLOTS);

SHARED_ARRAY(times, u64, (WHOLE + 1) * TIME_BUCKETS);

struct cpu {
	u64 seen;     /* frames since the last that was followed */
	u64 awaited;  /* number of the buffer whose route is to be looked up next */
};

MAP(cpus, PERCPU_ARRAY, 4, sizeof(struct cpu), 1);

/* The address of a buffer, from some place: the verifier lets nobody calculate with a pointer but by taking one from another. */
inline_always u64 number_of(u64 skb)
{
	asm volatile("%0 -= %1" : "+r"(skb) : "r"(&OBSERVED));
	return skb;
}

inline_always struct frame *slot_of(u64 skb)
{
	/* Buffers are 256 bytes long. */
	u32 slot = skb / 256 & (SLOTS - 1);

	return bpf_map_lookup_elem(&frames, &slot);
}

inline_always void add(u32 histogram, u32 bucket, s64 n)
{
	u32 index = histogram * TIME_BUCKETS + bucket;
	u64 *count = bpf_map_lookup_elem(&times, &index);

	if (count)
		__sync_fetch_and_add(count, n);
}

inline_always struct cpu *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static int enter(struct sk_buff *skb)
{
	u64 now, number = number_of((u64)skb);
	struct frame *frame = slot_of(number);
	struct cpu *cpu = this_cpu();

	if (!frame || !cpu)
		return 0;
	if (frame->skb == number)
		frame->skb = 0;
	if (!is_observed(skb->dev) || ++cpu->seen < EVERY)
		return 0;
	cpu->seen = 0;
	now = bpf_ktime_get_ns();
	frame->skb = number;
	frame->point = ENTRY;
	frame->whole = 0;
	frame->entered = frame->last = bpf_ktime_get_ns();
	/* No frame goes from a point to itself in no time: how long it takes to read the clock. */
	add(ENTRY, time_bucket(frame->last - now), 1);
	return 0;
}

inline_always void pass(struct frame *frame, u32 point)
{
	u64 now = bpf_ktime_get_ns();
	u32 from = frame->point;

	if (from >= POINTS)
		return;
	add(from * POINTS + point, time_bucket(now - frame->last), 1);
	frame->point = point;
	frame->last = now;
}

/* A frame that is followed has come to a point, with its buffer whole. */
inline_always struct frame *come(struct sk_buff *skb, u32 point)
{
	u64 number = number_of((u64)skb);
	struct frame *frame = slot_of(number);

	if (!frame || frame->skb != number)
		return 0;
	/* Another namespace's, or another frame in the same buffer: frames of this machine came in nowhere. */
	if (!is_observed(skb->dev) || (frame->point < QUEUE && point >= QUEUE && !skb->skb_iif)) {
		frame->skb = 0;
		return 0;
	}
	pass(frame, point);
	return frame;
}

SEC("tp_btf/napi_gro_receive_entry") int napi_gro_receive_entry(u64 *ctx)
{
	return enter((struct sk_buff *)ctx[0]);
}

SEC("tp_btf/napi_gro_frags_entry") int napi_gro_frags_entry(u64 *ctx)
{
	return enter((struct sk_buff *)ctx[0]);
}

SEC("tp_btf/netif_receive_skb_entry") int netif_receive_skb_entry(u64 *ctx)
{
	return enter((struct sk_buff *)ctx[0]);
}

SEC("tp_btf/netif_receive_skb_list_entry") int netif_receive_skb_list_entry(u64 *ctx)
{
	return enter((struct sk_buff *)ctx[0]);
}

SEC("tp_btf/netif_rx_entry") int netif_rx_entry(u64 *ctx)
{
	return enter((struct sk_buff *)ctx[0]);
}

SEC("tp_btf/netif_receive_skb") int netif_receive_skb(u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0];
	struct frame *frame = come(skb, RECEIVE);
	struct cpu *cpu = this_cpu();

	if (!frame || !cpu)
		return 0;
	/* Where the destination is in an IP header. */
	frame->routed[0] = frame->routed[1] = 0;
	if (skb->protocol == swap16(ETH_IPV4))
		bpf_probe_read_kernel(frame->routed, 4, skb->data + 16);
	else if (skb->protocol == swap16(ETH_IPV6))
		bpf_probe_read_kernel(frame->routed, 16, skb->data + 24);
	else
		return 0;
	cpu->awaited = frame->skb;
	return 0;
}

/* A lookup knows no frame: it is that of the frame that is awaited if it has the same destination. */
inline_always int look_up(const void *destination, u32 size)
{
	struct cpu *cpu = this_cpu();
	struct frame *frame;
	u64 found[2] = {};

	if (!cpu || !cpu->awaited)
		return 0;
	frame = slot_of(cpu->awaited);
	if (!frame || frame->skb != cpu->awaited || frame->point != RECEIVE) {
		cpu->awaited = 0;
		return 0;
	}
	bpf_probe_read_kernel(found, size, destination);
	if (found[0] == frame->routed[0] && found[1] == frame->routed[1]) {
		cpu->awaited = 0;
		pass(frame, LOOKUP);
	}
	return 0;
}

SEC("tp_btf/fib_table_lookup") int fib_table_lookup(u64 *ctx)
{
	return look_up(&((struct flowi4 *)ctx[1])->daddr, 4);
}

SEC("tp_btf/fib6_table_lookup") int fib6_table_lookup(u64 *ctx)
{
	return look_up(&((struct flowi6 *)ctx[3])->daddr, 16);
}

SEC("tp_btf/net_dev_queue") int net_dev_queue(u64 *ctx)
{
	come((struct sk_buff *)ctx[0], QUEUE);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit") int net_dev_start_xmit(u64 *ctx)
{
	struct frame *frame = come((struct sk_buff *)ctx[0], START);

	if (!frame)
		return 0;
	/* A virtual device sends by another one: the last start is that of the frame's way. */
	if (frame->whole)
		add(WHOLE, frame->whole - 1, -1);
	frame->whole = time_bucket(frame->last - frame->entered) + 1;
	add(WHOLE, frame->whole - 1, 1);
	return 0;
}

/* The driver has the frame; its buffer may be gone. */
SEC("tp_btf/net_dev_xmit") int net_dev_xmit(u64 *ctx)
{
	u64 number = number_of(ctx[0]);
	struct frame *frame = slot_of(number);

	if (!frame || frame->skb != number || frame->point != START)
		return 0;
	frame->skb = 0;
	pass(frame, SENT);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
