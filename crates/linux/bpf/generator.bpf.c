/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The generator: run by BPF_PROG_RUN with BPF_F_TEST_XDP_LIVE_FRAMES, once per frame, on every chosen CPU. It writes the
 * whole header of a frame in place (the pages are recycled, and the DUT has changed them), then redirects it to the port.
 *
 * User space maps `states`, fills in one element per CPU before the run, and reads the counters during it. A run ends by
 * itself: no frame leaves after `deadline_ns`, or once `frames_left` are gone, whatever happens to the process.
 */
#include "linerate.h"

/* One cache-line-aligned element per CPU; keep in step with `GeneratorState` in ports/live.rs. */
struct state {
	u64 duration_ns;   /* from the first frame */
	u64 deadline_ns;   /* CLOCK_MONOTONIC; nothing is sent from here on. Set by the program with its first frame */
	u64 frames_left;
	u64 rate_mfps;     /* thousandths of frames per second; 0: as fast as possible */
	u64 credit;        /* in 1e-12 frames: rate_mfps x ns */
	u64 last_ns;       /* the latest clock reading */
	u64 sequence;      /* of the next frame: as many have been sent */
	u64 flow;          /* next flow for the sequential order */
	u64 random;        /* splitmix64 state */
	u64 mix;           /* next entry of the frame-length pattern */
	u64 bytes;         /* without FCS; counted only where lengths differ */
	u64 first_ns;
	u64 stall_ns;      /* longest gap between two clock readings while frames were due */
	u64 finished;      /* 1: deadline or count reached */
	u64 stamp_in;      /* frames until the next stamped one */
	u32 stream;
	u32 target;        /* element of `ports` */
	u64 refused;       /* frames that could not be written or handed over */
	u64 macs_low;      /* the first eight bytes of the frame: destination and half of the source address */
	u32 macs_high;     /* the other half */
	u32 stamp_every;   /* one frame in so many is stamped */
	u64 not_before;    /* the first frame leaves no earlier: several hosts start at one moment */
	u64 step_ns;       /* another rate from then on; all ones: never. From the first frame, then CLOCK_MONOTONIC */
	u64 step_mfps;     /* with bursts: another period */
	/* The answers, where frames go both ways: every other frame is the last one's answer, on the way back. */
	u64 back_macs_low;
	u32 back_macs_high;
	u32 back_target;
	u64 back_sequence;
	u64 back_bytes;
	u32 back_stream;
	u32 back;          /* the next frame is an answer */
	u64 back_flow;     /* to this flow */
	u64 broadcasts;    /* frames that went to the broadcast address; they have no sequence number */
	u64 unicasts;      /* frames until the next of them */
	/* Bursts: frames that are left of the present one (all ones: no bursts in this load), nanoseconds from the first frame to the next
	 * one and from one to the next, in 1024ths; those that ended, their time together, when the present one began or the last one ended. */
	u64 burst_left;
	u64 burst_next;
	u64 burst_period;
	u64 bursts;
	u64 bursts_ns;
	u64 burst_began;
	u64 burst_frames;  /* of each burst: this CPU's part */
	/* IPv6 frames between IPv4 ones, and their answers; the share of one that is due, in millionths; whether the last frame is one. */
	u64 second_sequence;
	u64 second_bytes;
	u64 back_second_sequence;
	u64 back_second_bytes;
	u32 second_stream;
	u32 back_second_stream;
	u32 share;
	u32 is_second;
	u64 second_flow;
	u64 second_random;
	u64 second_mix;
	u64 pad[2];
};

/* Addresses and ports of a flow with all that can be summed beforehand. Keep in step with ports/flow_table.rs. */
struct flow {
	u32 source;        /* wire order; the low 32 bits for IPv6 */
	u32 destination;
	u16 source_port;
	u16 destination_port;
	u16 ip_check;      /* finished, for the first length of the mix */
	u16 l4_sum;        /* everything but sequence, time and length difference; not complemented */
};

struct alias {
	u32 threshold;
	u32 other;
};

/* One step of a frame-length pattern. */
struct length {
	u16 frame;         /* bytes without FCS */
	u16 ip_length;     /* wire order: total length (IPv4) or payload length (IPv6) */
	u16 l4_length;     /* wire order: UDP length */
	u16 ip_delta;      /* to add to the IPv4 header's sum */
	u32 l4_delta;      /* to add to the transport sum */
	u32 spare;
};

#define ORDER_SEQUENTIAL 0
#define ORDER_RANDOM 1
#define ORDER_ZIPF 2

const volatile u32 FLOWS = 1;
const volatile u32 ORDER = ORDER_SEQUENTIAL;
const volatile u32 LENGTHS = 1;
const volatile u32 L4_CHECKSUM = 1;
const volatile u32 SIGNED = 1;
const volatile u32 BOTH = 0;
const volatile u32 BROADCAST_EVERY = 0;
const volatile u32 BURST = 0;       /* whether loads may come in bursts */
const volatile u64 CATCH_UP_NS = 100000000;
const volatile u32 SOURCE_MACS = 0; /* of flows: the tester's interface in them, or 0 */
const volatile u64 SOURCE_MACS_SEED = 0;
const volatile u32 IPV6_SHARE = 0; /* millionths of the frames, where IPv4 and IPv6 are mixed */
const volatile u64 TEMPLATE[14] = {};
const volatile u64 TEMPLATE6[14] = {};

SHARED_ARRAY(states, struct state, 1);

SHARED_ARRAY(flows, struct flow, 1);

SHARED_ARRAY(aliases, struct alias, 1);

SHARED_ARRAY(lengths, struct length, 1);

MAP(ports, DEVMAP, 4, 4, 1);

/* splitmix64, as crates/wire/src/order.rs has it: both sides draw the same flows from the same seed. */
inline_always u64 mixed(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

inline_always u32 next_flow(u64 *next, u64 *state)
{
	u64 random;
	u32 index;

	if (ORDER == ORDER_SEQUENTIAL) {
		u64 flow = *next;

		*next = flow + 1 == FLOWS ? 0 : flow + 1;
		return flow;
	}
	random = mixed(*state += 0x9e3779b97f4a7c15ULL);
	index = ((random >> 32) * FLOWS) >> 32;
	if (ORDER == ORDER_ZIPF) {
		struct alias *alias = bpf_map_lookup_elem(&aliases, &index);

		if (alias && (u32)random >= alias->threshold)
			index = alias->other;
	}
	return index;
}

/*
 * Is a frame due? Credit grows with time at the wanted rate, and a frame costs one. The clock is read only when the
 * credit is used up and for every stamp, because reading it costs more than writing a frame.
 * A generator that was kept from running catches up, by no more than CATCH_UP_NS worth of frames; the gap is recorded.
 */
#define FRAME_CREDIT 1000000000000ULL
#define NEVER (~0ULL)

inline_always int due(struct state *s)
{
	u64 now, elapsed;

	if (unlikely(s->finished))
		return 0;
	if (unlikely(!s->frames_left)) {
		s->last_ns = bpf_ktime_get_ns();
		s->finished = 1;
		return 0;
	}
	if (s->stamp_in > 1 && (!BURST || s->burst_left) && (!s->rate_mfps || s->credit >= FRAME_CREDIT))
		return 1;
	now = bpf_ktime_get_ns();
	if (unlikely(!s->first_ns)) {
		if (now < s->not_before)
			return 0;
		s->first_ns = now;
		s->last_ns = now;
		s->deadline_ns = now + s->duration_ns;
		s->credit = FRAME_CREDIT;
		if (s->step_ns != NEVER)
			s->step_ns += now;
	}
	if (unlikely(now >= s->deadline_ns)) {
		s->finished = 1;
		return 0;
	}
	elapsed = now - s->last_ns;
	s->last_ns = now;
	if (unlikely(elapsed > s->stall_ns))
		s->stall_ns = elapsed;
	if (unlikely(now >= s->step_ns)) {
		/* last_ns is now: the old rate counts until the step */
		u64 late = now - s->step_ns, before = elapsed > late ? elapsed - late : 0;

		s->step_ns = NEVER;
		if (BURST && s->burst_left != NEVER) {
			s->burst_period = s->step_mfps;
		} else {
			s->credit += (before < CATCH_UP_NS ? before : CATCH_UP_NS) * s->rate_mfps;
			elapsed -= before;
			s->rate_mfps = s->step_mfps;
		}
	}
	if (BURST && !s->burst_left) {
		/* CPUs that share bursts begin at one moment */
		u64 due = (s->not_before ? s->not_before : s->first_ns) + (s->burst_next >> 10), late = now - due;

		if (now < due)
			return 0;
		if (late > CATCH_UP_NS)
			s->burst_next += (late - CATCH_UP_NS) << 10;
		s->burst_next += s->burst_period;
		s->burst_left = s->burst_frames;
		/* the gap after the last frame of the one before */
		late = now - s->burst_began;
		s->credit += (late < CATCH_UP_NS ? late : CATCH_UP_NS) * s->rate_mfps;
		if (s->credit > FRAME_CREDIT)
			s->credit = FRAME_CREDIT;
		s->burst_began = now;
		return !s->rate_mfps || s->credit >= FRAME_CREDIT;
	}
	if (!s->rate_mfps)
		return 1;
	if (unlikely(elapsed > CATCH_UP_NS))
		elapsed = CATCH_UP_NS;
	s->credit += elapsed * s->rate_mfps;
	if (unlikely(s->credit > CATCH_UP_NS * s->rate_mfps + FRAME_CREDIT))
		s->credit = CATCH_UP_NS * s->rate_mfps + FRAME_CREDIT;
	return s->credit >= FRAME_CREDIT;
}

/* The time stamp of this frame, or 0: one frame in stamp_every carries one, for which due() has just read the clock. */
inline_always u64 stamp(struct state *s)
{
	if (likely(s->stamp_in > 1)) {
		s->stamp_in--;
		return 0;
	}
	s->stamp_in = s->stamp_every;
	return s->last_ns & 0xffffffffffffULL;
}

#define L2(vlan) (14 + ((vlan) ? 4 : 0))
#define L3(v6) ((v6) ? 40 : 20)
#define L4(proto) ((proto) == PROTO_TCP ? 20 : 8)
#define CHECK(proto) ((proto) == PROTO_TCP ? 16 : (proto) == PROTO_UDP ? 6 : 2)

/*
 * v6, vlan, proto, extension (bytes of IPv6 extension headers) and second (IPv6 frames between IPv4 ones, with tables and a stream of
 * their own) are compile-time constants: each combination is a program of its own, without a branch on them.
 */
inline_always int write_frame(struct xdp_md *ctx, struct state *s, const int v6, const int vlan, const int proto,
			      const int extension, const int second)
{
	const int ip = L2(vlan), l4 = ip + L3(v6) + extension, sig = l4 + L4(proto);
	const int room = sig + SIGNATURE_LEN;
	const volatile u64 *template = second ? TEMPLATE6 : TEMPLATE;
	struct length *length = 0;
	struct flow *flow;
	u64 time, sequence, l4_sum;
	u32 index, bytes, answer, i, broadcast = 0;
	u8 *data, *end;

	answer = proto == PROTO_UDP && BOTH && s->back;
	if (BROADCAST_EVERY) {
		broadcast = !s->unicasts;
		s->unicasts = broadcast ? BROADCAST_EVERY - 1 : s->unicasts - 1;
	}
	if (LENGTHS > 1) {
		u64 *mix = second ? &s->second_mix : &s->mix;

		index = *mix + (second ? LENGTHS : 0);
		length = bpf_map_lookup_elem(&lengths, &index);
		if (!length)
			return XDP_DROP;
		bytes = ctx->data_end - ctx->data;
		if (bytes != length->frame && bpf_xdp_adjust_tail(ctx, (int)length->frame - (int)bytes)) {
			s->refused++;
			return XDP_DROP;
		}
		/* an answer has the length of its question */
		if (!BOTH || answer)
			*mix = *mix + 1 == LENGTHS ? 0 : *mix + 1;
	}
	if (answer) {
		index = s->back_flow;
	} else {
		index = second ? FLOWS + next_flow(&s->second_flow, &s->second_random) :
				 next_flow(&s->flow, &s->random);
		if (BOTH)
			s->back_flow = index;
	}
	flow = bpf_map_lookup_elem(&flows, &index);
	data = (u8 *)(long)ctx->data;
	end = (u8 *)(long)ctx->data_end;
	/* The template is copied in whole words: a signed frame always has room for the last one, an unsigned one may not. */
	if (!flow || data + (SIGNED ? room : sig) > end)
		return XDP_DROP;

	*(u64 *)data = (answer ? s->back_macs_low : s->macs_low) | (broadcast ? 0xffffffffffffULL : 0);
	*(u64 *)(data + 8) =
		(template[1] & 0xffffffff00000000ULL) | (answer ? s->back_macs_high : s->macs_high);
	if (SOURCE_MACS) {
		/* (RR & 0xfc):00:01:RR:RR:RR (RFC 4814, section 4.2), as wire's mac.rs has it */
		u64 random = mixed(SOURCE_MACS_SEED + ((u64)(second ? index - FLOWS : index) + 1) * 0x9e3779b97f4a7c15ULL);

		*(u16 *)(data + 6) = random & 0xfc;
		*(u32 *)(data + 8) = (answer ? 2 : SOURCE_MACS) | (u32)(random >> 8 & 0xffffff) << 8;
	}
#pragma clang loop unroll(full)
	for (i = 2; i < sig / 8; i++)
		((u64 *)data)[i] = template[i];
	if (sig % 8 >= 4)
		*(u32 *)(data + sig / 8 * 8) = ((const volatile u32 *)template)[sig / 8 * 2];
	if (sig % 4 >= 2)
		*(u16 *)(data + sig / 4 * 4) = ((const volatile u16 *)template)[sig / 4 * 2];

	if (v6) {
		*(u32 *)(data + ip + 20) = flow->source;
		*(u32 *)(data + ip + 36) = flow->destination;
		if (length)
			*(u16 *)(data + ip + 4) = length->ip_length;
	} else {
		u16 check = flow->ip_check;

		*(u32 *)(data + ip + 12) = flow->source;
		*(u32 *)(data + ip + 16) = flow->destination;
		if (length) {
			*(u16 *)(data + ip + 2) = length->ip_length;
			check = ~fold((u64)(u16)~check + length->ip_delta);
		}
		*(u16 *)(data + ip + 10) = check;
	}
	*(u16 *)(data + l4) = flow->source_port;
	*(u16 *)(data + l4 + 2) = flow->destination_port;
	if (answer) {
		/* source and destination change places, which leaves all sums as they are */
#pragma clang loop unroll(full)
		for (i = 0; i < (v6 ? 4 : 1); i++) {
			u32 *from = (u32 *)(data + ip + (v6 ? 8 : 12)) + i, *to = from + (v6 ? 4 : 1);
			u32 other = *from;

			*from = *to;
			*to = other;
		}
		*(u16 *)(data + l4) = flow->destination_port;
		*(u16 *)(data + l4 + 2) = flow->source_port;
	}
	if (proto == PROTO_ICMP) {
		/* type and code stay as in the template; the identifier carries the source port, the number the other */
		*(u16 *)(data + l4) = ((const volatile u16 *)TEMPLATE)[l4 / 2];
		*(u16 *)(data + l4 + 2) = 0;
		*(u16 *)(data + l4 + 4) = flow->source_port;
		*(u16 *)(data + l4 + 6) = flow->destination_port;
	}
	if (length && proto == PROTO_UDP)
		*(u16 *)(data + l4 + 4) = length->l4_length;
	if (IPV6_SHARE && !v6) {
		/* The page may have had an IPv6 frame, whose longer header lay over the first octets of the data: they count from 0 */
		u32 *counted = (u32 *)(data + (SIGNED ? room : sig));

		if ((u8 *)(counted + 5) > end)
			return XDP_DROP;
#pragma clang loop unroll(full)
		for (i = 0; i < 5; i++)
			counted[i] = 0x03020100 + i * 0x04040404;
	}

	l4_sum = flow->l4_sum;
	if (second)
		sequence = answer ? s->back_second_sequence : s->second_sequence;
	else
		sequence = answer ? s->back_sequence : s->sequence;
	if (SIGNED) {
		struct signature *signature = (struct signature *)(data + sig);
		u16 sequence_high = swap16((u16)(sequence >> 32)), time_high;
		u32 sequence_low = swap32((u32)sequence), time_low;
		u32 forward = second ? s->second_stream : s->stream;
		u32 backward = second ? s->back_second_stream : s->back_stream;
		u16 stream = swap16((u16)(answer ? backward : forward));

		time = stamp(s);
		time_high = swap16((u16)(time >> 32));
		time_low = swap32((u32)time);
		signature->magic = broadcast ? 0 : MAGIC;
		signature->stream = stream;
		signature->sequence_high = sequence_high;
		signature->sequence_low = sequence_low;
		signature->time_high = time_high;
		signature->time_low = time_low;
		/* signatures start at an even offset, so that its 16-bit words are the checksum's */
		l4_sum += (u64)stream + sequence_high + sequence_low + time_high + time_low;
	} else {
		stamp(s);
	}
	if (L4_CHECKSUM || second) {
		u16 check;

		if (length)
			l4_sum += length->l4_delta;
		if (broadcast && SIGNED)
			l4_sum += (~MAGIC & 0xffff) + (~MAGIC >> 16);
		check = ~fold(l4_sum);
		if (proto == PROTO_UDP && !check)
			check = 0xffff;
		*(u16 *)(data + l4 + CHECK(proto)) = check;
	}

	s->frames_left--;
	if (s->rate_mfps)
		s->credit -= FRAME_CREDIT;
	if (BURST && !--s->burst_left) {
		u64 now = bpf_ktime_get_ns();

		s->bursts++;
		s->bursts_ns += now - s->burst_began;
		s->burst_began = now;
	}
	if (broadcast) {
		s->broadcasts++;
		return bpf_redirect_map(&ports, s->target, XDP_DROP);
	}
	if (answer) {
		if (second) {
			s->back_second_sequence = sequence + 1;
			s->back_second_bytes += end - data;
		} else {
			s->back_sequence = sequence + 1;
			s->back_bytes += end - data;
		}
		s->back = 0;
		return bpf_redirect_map(&ports, s->back_target, XDP_DROP);
	}
	if (second) {
		s->second_sequence = sequence + 1;
		s->second_bytes += end - data;
	} else {
		s->sequence = sequence + 1;
		if (LENGTHS > 1)
			s->bytes += end - data;
	}
	if (BOTH)
		s->back = 1;
	return bpf_redirect_map(&ports, s->target, XDP_DROP);
}

inline_always struct state *due_state(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct state *s = bpf_map_lookup_elem(&states, &cpu);

	return s && due(s) ? s : 0;
}

#define GENERATOR_EXTENDED(name, v6, vlan, proto, extension)                                                           \
	SEC("xdp") int name(struct xdp_md *ctx)                                                                        \
	{                                                                                                              \
		struct state *s = due_state();                                                                         \
                                                                                                                       \
		return s ? write_frame(ctx, s, v6, vlan, proto, extension, 0) : XDP_DROP;                              \
	}
#define GENERATOR(name, v6, vlan, proto) GENERATOR_EXTENDED(name, v6, vlan, proto, 0)

GENERATOR(gen_v4_udp, 0, 0, PROTO_UDP)
GENERATOR(gen_v6_udp, 1, 0, PROTO_UDP)
GENERATOR(gen_v4_tcp, 0, 0, PROTO_TCP)
GENERATOR(gen_v6_tcp, 1, 0, PROTO_TCP)
GENERATOR(gen_v4_icmp, 0, 0, PROTO_ICMP)
GENERATOR(gen_v6_icmp, 1, 0, PROTO_ICMP)
GENERATOR(gen_v4_udp_vlan, 0, 1, PROTO_UDP)
GENERATOR(gen_v6_udp_vlan, 1, 1, PROTO_UDP)
GENERATOR(gen_v4_tcp_vlan, 0, 1, PROTO_TCP)
GENERATOR(gen_v6_tcp_vlan, 1, 1, PROTO_TCP)
GENERATOR(gen_v4_icmp_vlan, 0, 1, PROTO_ICMP)
GENERATOR(gen_v6_icmp_vlan, 1, 1, PROTO_ICMP)

GENERATOR_EXTENDED(gen_v6_udp_extended8, 1, 0, PROTO_UDP, 8)
GENERATOR_EXTENDED(gen_v6_udp_extended24, 1, 0, PROTO_UDP, 24)
GENERATOR_EXTENDED(gen_v6_udp_extended40, 1, 0, PROTO_UDP, 40)
GENERATOR_EXTENDED(gen_v6_udp_vlan_extended8, 1, 1, PROTO_UDP, 8)
GENERATOR_EXTENDED(gen_v6_udp_vlan_extended24, 1, 1, PROTO_UDP, 24)
GENERATOR_EXTENDED(gen_v6_udp_vlan_extended40, 1, 1, PROTO_UDP, 40)

/* IPv6 frames between IPv4 ones, evenly spread; an answer has the version of its question. */
inline_always int write_mixed(struct xdp_md *ctx, const int vlan)
{
	struct state *s = due_state();

	if (!s)
		return XDP_DROP;
	if (!BOTH || !s->back) {
		s->share += IPV6_SHARE;
		s->is_second = s->share >= 1000000;
		if (s->is_second)
			s->share -= 1000000;
	}
	return s->is_second ? write_frame(ctx, s, 1, vlan, PROTO_UDP, 0, 1) :
			      write_frame(ctx, s, 0, vlan, PROTO_UDP, 0, 0);
}

SEC("xdp") int gen_mixed_udp(struct xdp_md *ctx)
{
	return write_mixed(ctx, 0);
}

SEC("xdp") int gen_mixed_udp_vlan(struct xdp_md *ctx)
{
	return write_mixed(ctx, 1);
}

/*
 * The limit of the machine: redirects without writing. Used by the benchmarks as the yardstick for the programs above;
 * it ends by the same deadline.
 */
SEC("xdp") int gen_limit(struct xdp_md *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct state *s = bpf_map_lookup_elem(&states, &cpu);

	if (!s)
		return XDP_DROP;
	if (unlikely(s->finished))
		return XDP_DROP;
	if (unlikely(!(s->sequence & 63))) {
		u64 now = bpf_ktime_get_ns();

		if (!s->first_ns) {
			s->first_ns = now;
			s->deadline_ns = now + s->duration_ns;
		}
		if (now >= s->deadline_ns) {
			s->finished = 1;
			return XDP_DROP;
		}
		s->last_ns = now;
	}
	s->sequence++;
	return bpf_redirect_map(&ports, s->target, XDP_DROP);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
