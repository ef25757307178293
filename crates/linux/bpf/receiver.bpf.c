/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The receiver: an XDP program that recognises test frames by the signature behind their transport header, counts them
 * per CPU, queue and stream, finds loss, duplicates and reordering, keeps a histogram of latencies, and drops.
 *
 * Everything is counted in arrays that user space maps: sampling costs the path nothing.
 */
#include "linerate.h"

#define STREAMS 256      /* streams known to one receiver: the low byte of the stream id */
#define EXTENSIONS 4     /* IPv6 extension headers that are looked through; as wire's extensions.rs has it */
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
	u64 bytes;
	u64 pad[2];
};

struct sample {
	u32 length;
	u32 kind;
	u8 bytes[64];
};

/* What is found out about single frames; keep in step with ports/findings.rs. */
#define OUTAGES 16
#define RECENT 8192 /* delays of a stream that are remembered for their neighbours */
#define TAGS 2048

struct outage {
	u64 from_ns;
	u64 to_ns;
	u64 missing;     /* sequence numbers */
};

/* One for each stream: its frames may arrive on several CPUs. */
struct found {
	u64 last_ns;     /* the latest arrival */
	u64 next;        /* highest sequence plus one */
	u64 lost_ns;     /* when the first frame after the last missing one was sent */
	u64 shortest_ns; /* of the outages */
	struct outage outages[OUTAGES];
};

/* One for each CPU. */
struct delays {
	u64 frames;
	u64 pairs;
	u64 min_ns;
	u64 max_ns;
	s64 least_ns;    /* of the differences of successive frames */
	s64 most_ns;
	u64 pad[2];
};

struct tag {
	u64 sent_ns;
	u64 delay_ns;
};

const volatile u32 QUEUES = 1;
const volatile u32 STREAM_BASE = 0; /* high byte of the stream ids that are ours */
const volatile u32 PASS_FOREIGN = 0;
const volatile u32 FINDS = 0;       /* look at single frames where the load asks for it */
const volatile u32 UNSIGNED = 0;    /* count frames without a signature as test frames: what trafgen and pkt-gen send */

SHARED_ARRAY(queues, struct queue, 1); /* CPUs x QUEUES */

SHARED_ARRAY(streams, struct stream, 1); /* CPUs x STREAMS */

/* STREAMS x WINDOW_WORDS; a word is a 32-bit epoch above 32 bits, one per sequence number. */
SHARED_ARRAY(windows, u64, 1);

SHARED_ARRAY(latencies, u64, 1); /* CPUs x TIME_BUCKETS */

SHARED_ARRAY(ahead, u64, STREAMS); /* how far each stream's generator's clock is ahead of ours, in ns */

SHARED_ARRAY(sample, struct sample, 1);

struct control {
	u64 answered;    /* test frames go up the stack, to a socket that answers them */
	u64 finding;     /* look at stamped frames: 1; also at their neighbours, as all are stamped: 2 */
	u64 first_ns;    /* when the first stamped frame was sent */
	u64 tag_after;   /* nanoseconds from then on */
	u64 tag_gap;     /* nanoseconds between tagged frames */
	u64 tag_next;
	u64 tagged;
	u64 pad;
};

SHARED_ARRAY(control, struct control, 1);

SHARED_ARRAY(found, struct found, 1); /* STREAMS_USED */

/* STREAMS_USED x RECENT: the low 24 bits of the sequence number above the delay plus one, in 40 bits. */
SHARED_ARRAY(recent, u64, 1);

SHARED_ARRAY(delays, struct delays, 1); /* CPUs */

/* Differences of successive frames: those below zero, then the others. */
SHARED_ARRAY(differences, u64, 1); /* CPUs x 2 x TIME_BUCKETS */

SHARED_ARRAY(tags, struct tag, 1); /* TAGS */

const volatile u32 STREAMS_USED = STREAMS;

inline_always u64 age_of(u32 id, u64 now, u64 stamp)
{
	u64 age = now - stamp, *ns = bpf_map_lookup_elem(&ahead, &id);

	if (ns)
		age += *(volatile u64 *)ns;
	age &= 0xffffffffffffULL;
	return age >> 47 ? 0 : age; /* the stamp is later, by clocks that were compared */
}

inline_always void count_latency(u32 cpu, u64 age)
{
	u32 index = cpu * TIME_BUCKETS + time_bucket(age);
	u64 *bucket = bpf_map_lookup_elem(&latencies, &index);

	if (bucket)
		(*bucket)++;
}

inline_always void keep_outage(struct found *f, u64 from, u64 to, u64 missing)
{
	u64 shortest = ~0ULL, second = ~0ULL, length;
	u32 at = 0, i;

#pragma clang loop unroll(full)
	for (i = 0; i < OUTAGES; i++) {
		length = f->outages[i].to_ns - f->outages[i].from_ns;
		if (length < shortest) {
			second = shortest;
			shortest = length;
			at = i;
		} else if (length < second) {
			second = length;
		}
	}
	at &= OUTAGES - 1;
	f->outages[at].from_ns = from;
	f->outages[at].to_ns = to;
	f->outages[at].missing = missing;
	f->shortest_ns = second < to - from ? second : to - from;
}

inline_always void find_outage(struct found *f, u64 sequence, u64 now, u64 sent)
{
	u64 last = __sync_lock_test_and_set(&f->last_ns, now), next = *(volatile u64 *)&f->next, missing = 0;

	if (sequence >= next)
		next = __sync_lock_test_and_set(&f->next, sequence + 1);
	if (!last)
		return;
	if (sequence > next) {
		missing = sequence - next;
		if (sent > f->lost_ns)
			f->lost_ns = sent;
	}
	/* Another CPU may have read its clock later and come first. */
	if (now > last && now - last > f->shortest_ns)
		keep_outage(f, last, now, missing);
}

/* The delay of a stream's frame, plus one, if it is remembered. */
inline_always u64 recent_delay(u32 id, u64 sequence)
{
	u32 index = id * RECENT + (sequence & (RECENT - 1));
	u64 *entry = bpf_map_lookup_elem(&recent, &index), kept = entry ? *(volatile u64 *)entry : 0;

	return kept >> 40 == (sequence & 0xffffff) ? kept & 0xffffffffffULL : 0;
}

inline_always void count_difference(u32 cpu, struct delays *d, s64 difference)
{
	u32 index = cpu * 2 * TIME_BUCKETS;
	u64 *bucket;

	if (!d->pairs || difference < d->least_ns)
		d->least_ns = difference;
	if (!d->pairs || difference > d->most_ns)
		d->most_ns = difference;
	d->pairs++;
	index += difference < 0 ? time_bucket(-difference) : TIME_BUCKETS + time_bucket(difference);
	bucket = bpf_map_lookup_elem(&differences, &index);
	if (bucket)
		(*bucket)++;
}

inline_always void find_differences(u32 cpu, struct delays *d, u32 id, u64 sequence, u64 age)
{
	u32 index = id * RECENT + (sequence & (RECENT - 1));
	u64 *entry = bpf_map_lookup_elem(&recent, &index), delay = age + 1, other;

	if (!entry || delay >> 40)
		return;
	*(volatile u64 *)entry = sequence << 40 | delay;
	other = recent_delay(id, sequence - 1);
	if (other)
		count_difference(cpu, d, delay - other);
	other = recent_delay(id, sequence + 1);
	if (other)
		count_difference(cpu, d, other - delay);
}

inline_always void tag(struct control *c, u64 sent, u64 age)
{
	struct tag *kept;
	u32 index;

	if (!c->first_ns)
		c->first_ns = sent;
	if (sent < c->tag_next || sent < c->first_ns + c->tag_after || c->tagged >= TAGS)
		return;
	c->tag_next = sent + c->tag_gap;
	index = __sync_fetch_and_add(&c->tagged, 1);
	kept = bpf_map_lookup_elem(&tags, &index);
	if (kept) {
		kept->sent_ns = sent;
		kept->delay_ns = age;
	}
}

inline_always void find(u32 cpu, u32 id, u64 sequence, u64 now, u64 age)
{
	u32 zero = 0;
	struct control *c = bpf_map_lookup_elem(&control, &zero);
	struct delays *d = bpf_map_lookup_elem(&delays, &cpu);
	struct found *f = bpf_map_lookup_elem(&found, &id);
	u64 sent = now - age;

	if (!c || !d || !f || !c->finding)
		return;
	if (!d->frames || age < d->min_ns)
		d->min_ns = age;
	if (age > d->max_ns)
		d->max_ns = age;
	d->frames++;
	tag(c, sent, age);
	if (c->finding < 2)
		return;
	find_outage(f, sequence, now, sent);
	find_differences(cpu, d, id, sequence, age);
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
	u64 sequence, stamp, now, age;
	enum novelty novelty;
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
		if (unlikely(proto != PROTO_UDP)) {
			u32 i;

#pragma clang loop unroll(full)
			for (i = 0; i < EXTENSIONS; i++) {
				if (proto != 0 && proto != 43 && proto != 44 && proto != 60)
					break;
				if (at + 8 > end || (proto == 44 && *(u16 *)(at + 2)))
					goto foreign;
				/* the kernel's own reports have a hop-by-hop header, too */
				late = proto == 44 ? 8 : (at[1] + 1) * 8;
				proto = at[0];
				at += late & 0x7ff;
			}
		}
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
	novelty = observe(id, sequence);
	switch (novelty) {
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
	if (stamp) {
		now = bpf_ktime_get_ns();
		age = age_of(id, now, stamp);
		count_latency(cpu, age);
		if (FINDS && novelty == NEW)
			find(cpu, id, sequence, now, age);
	}
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
