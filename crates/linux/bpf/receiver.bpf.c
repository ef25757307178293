/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The receiver: an XDP program that recognises test frames by the signature behind their transport header, counts them
 * per CPU, queue and stream, finds loss, duplicates and reordering, keeps a histogram of latencies, and drops.
 *
 * Everything is counted in arrays that user space maps: sampling costs the path nothing.
 */
#include "linerate.h"

#define STREAMS 256      /* streams known to one receiver: the low byte of the stream id */
#define WINDOW_WORDS 8192 /* x 32 sequence numbers: how far apart duplicates and stragglers are told apart */

/* Foreign frames by kind; keep in step with ports/xdp_receiver.rs. */
enum foreign { FOREIGN_ARP, FOREIGN_IPV4, FOREIGN_IPV6, FOREIGN_ICMPV6, FOREIGN_OTHER, FOREIGN_STREAM, FOREIGN_KINDS };

struct queue {
	u64 frames;      /* test frames */
	u64 bytes;       /* of test frames, without FCS */
	u64 foreign[FOREIGN_KINDS];
};

struct stream {
	u64 received;    /* every copy of every frame */
	u64 duplicates;
	u64 reordered;   /* below the highest sequence seen on this CPU (RFC 4737) */
	u64 too_late;    /* behind the window: may be a duplicate */
	u64 next;        /* highest sequence seen on this CPU, plus one */
	u64 first_ns;    /* of stamped frames */
	u64 last_ns;
	u64 bytes;
};

struct sample {
	u32 length;
	u32 kind;
	u8 bytes[64];
};

const volatile u32 QUEUES = 1;
const volatile u32 STREAM_BASE = 0; /* high byte of the stream ids that are ours */
const volatile u32 PASS_FOREIGN = 0;
const volatile u32 UNSIGNED = 0;    /* count frames without a signature as test frames: what trafgen and pkt-gen send */

struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct queue);
	MAP_UINT(max_entries, 1); /* CPUs x QUEUES */
	MAP_UINT(map_flags, BPF_F_MMAPABLE);
} queues SEC(".maps");

struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct stream);
	MAP_UINT(max_entries, 1); /* CPUs x STREAMS */
	MAP_UINT(map_flags, BPF_F_MMAPABLE);
} streams SEC(".maps");

/* STREAMS x WINDOW_WORDS; a word is a 32-bit epoch above 32 bits, one per sequence number. */
struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, BPF_F_MMAPABLE);
} windows SEC(".maps");

struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
	MAP_UINT(max_entries, 1); /* CPUs x TIME_BUCKETS */
	MAP_UINT(map_flags, BPF_F_MMAPABLE);
} latencies SEC(".maps");

struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
	MAP_UINT(max_entries, STREAMS); /* how far each stream's generator's clock is ahead of ours, in ns */
	MAP_UINT(map_flags, BPF_F_MMAPABLE);
} ahead SEC(".maps");

struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct sample);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, BPF_F_MMAPABLE);
} sample SEC(".maps");

struct control {
	u64 answered;    /* test frames go up the stack, to a socket that answers them */
};

struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct control);
	MAP_UINT(max_entries, 1);
	MAP_UINT(map_flags, BPF_F_MMAPABLE);
} control SEC(".maps");

const volatile u32 STREAMS_USED = STREAMS;

inline_always void measure_latency(u32 cpu, u32 id, struct stream *stream, u64 stamp)
{
	u64 now = bpf_ktime_get_ns(), age = now - stamp;
	u64 *ns = bpf_map_lookup_elem(&ahead, &id), *bucket;
	u32 index;

	if (ns)
		age += *(volatile u64 *)ns;
	age &= 0xffffffffffffULL;
	if (age >> 47) /* the stamp is later, by clocks that were compared */
		age = 0;
	index = cpu * TIME_BUCKETS + time_bucket(age);
	bucket = bpf_map_lookup_elem(&latencies, &index);
	if (bucket)
		(*bucket)++;
	if (!stream->first_ns)
		stream->first_ns = now;
	stream->last_ns = now;
}

/*
 * Is this sequence number new, a duplicate, or too old to say? Frames of one stream may arrive on several CPUs at once,
 * so the window is shared and its words change atomically; a word that holds an older epoch is replaced as a whole.
 */
enum novelty { NEW, DUPLICATE, TOO_LATE };

inline_always enum novelty observe(u32 stream, u64 sequence)
{
	u32 index = stream * WINDOW_WORDS + ((sequence >> 5) & (WINDOW_WORDS - 1));
	u64 *word = bpf_map_lookup_elem(&windows, &index);
	u32 epoch = sequence >> 18;
	u64 bit = 1ULL << (sequence & 31), old, fresh = (u64)epoch << 32 | bit;
	s32 age;

	if (!word)
		return TOO_LATE;
	old = *(volatile u64 *)word;
	age = epoch - (u32)(old >> 32);
	if (age < 0)
		return TOO_LATE;
	if (age > 0) {
		u64 found = __sync_val_compare_and_swap(word, old, fresh);

		if (found == old)
			return NEW;
		if (found >> 32 != epoch)
			return TOO_LATE;
	}
	return __sync_fetch_and_or(word, bit) & bit ? DUPLICATE : NEW;
}

inline_always void keep_sample(u32 kind, const u8 *data, const u8 *end)
{
	u32 zero = 0, i;
	struct sample *kept = bpf_map_lookup_elem(&sample, &zero);

	if (!kept || kept->length)
		return;
	kept->length = end - data;
	kept->kind = kind;
	for (i = 0; i < sizeof(kept->bytes); i++) {
		if (data + i + 1 > end)
			break;
		kept->bytes[i] = data[i];
	}
}

/*
 * What becomes of a test frame that was counted. One that is to be answered goes up the stack to a packet socket, addressed to
 * nobody: the stack takes it for another station's and neither answers nor forwards it.
 */
inline_always int counted(u8 *data)
{
	u32 zero = 0;
	struct control *now = bpf_map_lookup_elem(&control, &zero);

	if (likely(!now || !*(volatile u64 *)&now->answered))
		return XDP_DROP;
	data[0] ^= 2;
	return XDP_PASS;
}

inline_always int count_foreign(struct queue *queue, u32 kind, u8 *data, const u8 *end)
{
	queue->foreign[kind]++;
	keep_sample(kind, data, end);
	if (kind == FOREIGN_STREAM)
		return counted(data);
	return PASS_FOREIGN ? XDP_PASS : XDP_DROP;
}

inline_always const struct signature *transport(u32 proto, const u8 *at, const u8 *end)
{
	if (proto == PROTO_TCP) {
		if (at + 20 > end)
			return 0;
		at += (at[12] >> 4) * 4;
	} else {
		at += 8;
	}
	return (const struct signature *)at;
}

inline_always int receive_frame(struct xdp_md *ctx)
{
	u8 *data = (u8 *)(long)ctx->data;
	const u8 *end = (u8 *)(long)ctx->data_end, *at = data + 14;
	u32 cpu = bpf_get_smp_processor_id(), index = cpu * QUEUES + ctx->rx_queue_index, kind, proto, id;
	struct queue *queue = bpf_map_lookup_elem(&queues, &index);
	const struct signature *signature;
	struct stream *stream;
	u64 sequence, stamp;
	u16 type;
	u32 late;

	if (!queue || at > end)
		return XDP_DROP;
	type = *(u16 *)(data + 12);
	if (type == swap16(ETH_VLAN) || type == swap16(ETH_QINQ)) {
		if (at + 4 > end)
			return XDP_DROP;
		type = *(u16 *)(at + 2);
		at += 4;
	}
	kind = FOREIGN_OTHER;
	if (type == swap16(ETH_IPV4)) {
		kind = FOREIGN_IPV4;
		if (at + 20 > end)
			goto foreign;
		proto = at[9];
		at += (at[0] & 15) * 4;
	} else if (type == swap16(ETH_IPV6)) {
		kind = FOREIGN_IPV6;
		if (at + 40 > end)
			goto foreign;
		proto = at[6];
		at += 40;
		if (proto == PROTO_ICMPV6)
			kind = FOREIGN_ICMPV6;
	} else {
		if (type == swap16(ETH_ARP))
			kind = FOREIGN_ARP;
		goto foreign;
	}
	if (proto != PROTO_UDP && proto != PROTO_TCP && proto != PROTO_ICMP && proto != PROTO_ICMPV6)
		goto foreign;
	if (UNSIGNED) {
		if (kind == FOREIGN_ICMPV6)
			goto foreign;
		queue->frames++;
		queue->bytes += end - data;
		return XDP_DROP;
	}
	signature = transport(proto, at, end);
	if (!signature || (const u8 *)(signature + 1) > end || signature->magic != MAGIC)
		goto foreign;
	id = swap16(signature->stream);
	kind = FOREIGN_STREAM;
	if (id >> 8 != STREAM_BASE)
		goto foreign;
	id &= STREAMS - 1;
	index = cpu * STREAMS + id;
	stream = bpf_map_lookup_elem(&streams, &index);
	if (!stream || id >= STREAMS_USED)
		goto foreign;

	queue->frames++;
	queue->bytes += end - data;
	stream->received++;
	stream->bytes += end - data;
	sequence = signature_sequence(signature);
	stamp = signature_time(signature);
	late = sequence < stream->next;
	if (likely(!late))
		stream->next = sequence + 1;
	switch (observe(id, sequence)) {
	case NEW:
		stream->reordered += late;
		break;
	case DUPLICATE:
		stream->duplicates++;
		break;
	case TOO_LATE:
		stream->too_late++;
		break;
	}
	if (stamp)
		measure_latency(cpu, id, stream, stamp);
	return counted(data);

foreign:
	return count_foreign(queue, kind, data, end);
}

SEC("xdp") int receive(struct xdp_md *ctx)
{
	return receive_frame(ctx);
}

/* The same for a link whose MTU leaves frames no page to themselves (veth: above 3,506): only headers are looked at. */
SEC("xdp.frags") int receive_frags(struct xdp_md *ctx)
{
	return receive_frame(ctx);
}

/* The yardstick for the receiver's cost: drops, counting nothing. */
SEC("xdp") int bare_drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
