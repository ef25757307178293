/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Both ends of connections, without state: one frame of a connection is under way at any time, and each end turns the frame that has
 * arrived into the next one, in its place. The connection's number travels in its sequence numbers, which NAT leaves alone.
 *
 * Run as: `open4` and `open6` by BPF_PROG_RUN with BPF_F_TEST_XDP_LIVE_FRAMES make first frames on each of the generator's CPUs, `resume4`
 * and `resume6` the next frames of connections that are kept open; `client` and `server` are XDP programs of the tester's two interfaces. Each end sets a bit for each connection and stage, so that user
 * space accounts for every connection afterwards.
 *
 * A load ends by itself: no first frame leaves after `deadline_ns`, or once `left` are gone, whatever happens to the process.
 */
#include "linerate.h"
#include "numbers.h"

/* Keep the rest in step with ports/connections.rs. */

/* A CPU that opens connections. */
struct opener {
	u64 duration_ns;   /* from the first frame */
	u64 deadline_ns;   /* CLOCK_MONOTONIC; set by the program with its first frame */
	u64 left;
	u64 rate_mfps;     /* thousandths of connections a second; 0: as fast as possible */
	u64 credit;        /* in 1e-12 connections */
	u64 last_ns;
	u64 first_ns;
	u64 not_before;
	u64 stall_ns;
	u64 finished;
	u64 first;         /* this CPU's first connection... */
	u64 attempted;     /* ...and how many it has opened */
	u64 refused;       /* frames that could not be written or handed over */
	u64 window;        /* connections under way at most; 0: any number */
	u64 heard;         /* bytes, or frames, that had arrived at the last look at a shut window... */
	u64 heard_ns;      /* ...since when no more have */
	u64 looks;         /* at the shut window since then */
	u64 given_up;      /* connections that no longer count as under way */
	u64 idle_ns;       /* time lost waiting for them */
	u32 target;        /* element of `ports` */
	u32 macs_high;     /* half of the source address */
	u64 macs_low;      /* destination and the other half */
	u64 resumed;       /* kept connections that were looked at, to send their next frame */
	u64 awaits;        /* whether the load ends only when no connection is under way */
	u64 flood_mfps;    /* thousandths of SYNs of the flood a second; illegal SYNs have no rate */
	u64 flood_credit;  /* in 1e-12 SYNs */
	u64 flooded;       /* SYNs of the flood that were sent */
	u64 flood_run;     /* SYNs of the flood since the last look at the clock, or whether a connection is due */
	u64 price;         /* credit that the next connection takes... */
	u64 flood_price;   /* ...and the next SYN of the flood */
	u64 late;          /* part of the former that the last one was late by... */
	u64 flood_late;    /* ...and of the latter */
	u64 pad;
};

/* Counters of a CPU at one end. */
struct seen {
	u64 came[STAGES];  /* frames of each stage that arrived... */
	u64 went[STAGES];  /* ...and those that were made of them, by their own stage */
	u64 again[STAGES]; /* of those that arrived: duplicates */
	u64 came_bytes;
	u64 went_bytes;
	u64 closed;        /* connections whose last frame arrived here */
	u64 stale;         /* frames of an earlier load */
	u64 changed;       /* frames whose sequence numbers are not those that were sent */
	u64 unwritten;     /* frames that could not be written */
	u64 foreign[5];    /* by kind */
	u64 flood[2];      /* SYNs of the flood that were sent, or arrived, and their bytes */
	u64 flood_answers; /* frames with which the DUT answered them */
	u64 acks[2];       /* bare ACKs of connections that are of no stage: those that arrived, and those that were sent */
	u64 shut;          /* SYN/ACKs with a window of 0: a SYN proxy answered in the server's place */
	u64 shifted;       /* with a table: SYN/ACKs with another number than the server's */
	u64 parts;         /* segments of a server of HTTP that are of no stage... */
	u64 read;          /* ...bytes of its answers... */
	u64 refused;       /* ...and answers with another status than 200 */
};

/* Of a thread's connections, by the thread's number: those that closed at the client, and frames that arrived there (about: several CPUs
 * count them). */
struct progress {
	u64 closed;
	u64 frames;
};

enum foreign { F_RESET, F_ICMP, F_ARP, F_ICMPV6, F_OTHER };

SHARED_ARRAY(control, struct control, 1);
SHARED_ARRAY(openers, struct opener, 1);
/* Of the clients, then of the servers: an element for each CPU. */
SHARED_ARRAY(ends, struct seen, 1);
SHARED_ARRAY(progress, struct progress, 1);
SHARED_ARRAY(bits, u64, 1);
ARRAY(opened_at, u64, WORDS); /* of the first connection of each word of bits */
ARRAY(peers, u32, 1); /* with a table: with which number the other end began, as the clients see it, then as the servers do */
SHARED_ARRAY(times, u64, 1);
MAP(ports, DEVMAP, 4, 4, 1);

const volatile u32 CPUS = 1;

#include "segments.h"

/* Sets the bit of a connection's stage. Returns whether it was set. */
inline_always int mark(u32 stage, u32 flow)
{
	u32 index = stage * WORDS + (flow >> 6);
	u64 bit = 1ULL << (flow & 63), *word = bpf_map_lookup_elem(&bits, &index);

	return word && __sync_fetch_and_or(word, bit) & bit;
}

inline_always int is_marked(u32 stage, u32 flow)
{
	u32 index = stage * WORDS + (flow >> 6);
	u64 *word = bpf_map_lookup_elem(&bits, &index);

	return word && *word & 1ULL << (flow & 63);
}

/* Progress of the thread that opened a connection; none where each CPU hears of its own connections. */
inline_always struct progress *progress_of(const struct control *how, u32 flow)
{
	u32 thread;

	if (!how->each)
		return 0;
	thread = flow / how->each;
	return bpf_map_lookup_elem(&progress, &thread);
}

inline_always u64 *time_of(u32 flow)
{
	u32 index = flow >> 6;

	return bpf_map_lookup_elem(&opened_at, &index);
}

inline_always void count_time(u32 flow)
{
	u64 *opened = time_of(flow), *bucket, began = opened ? *opened : 0, now = bpf_ktime_get_ns();
	u32 index;

	if (!began || began > now)
		return;
	index = bpf_get_smp_processor_id() * TIME_BUCKETS + time_bucket(now - began);
	bucket = bpf_map_lookup_elem(&times, &index);
	if (bucket)
		(*bucket)++;
}

/* Opening. */

#include "pace.h"

/*
 * Lost connections would keep the window shut for ever. Frames that are under way arrive before this program runs for the next batch, or
 * soon after: where nothing has arrived for so long, and in so many batches, connections under way are given up.
 */
#define PATIENCE_LOOKS (64 * 32)

inline_always int due(const struct control *how, struct opener *s, const struct seen *client, const struct seen *server)
{
	const volatile struct progress *elsewhere = progress_of(how, s->first);
	u64 closed, heard, now;
	s64 under_way;
	int shut;

	if (unlikely(s->finished))
		return 0;
	closed = elsewhere ? elsewhere->closed : *(const volatile u64 *)&client->closed + *(const volatile u64 *)&server->closed;
	under_way = s->attempted - closed - s->given_up;
	if (unlikely(!s->left && (!s->awaits || under_way <= 0))) {
		s->last_ns = bpf_ktime_get_ns();
		s->finished = 1;
		return 0;
	}
	shut = !s->left || (s->window && under_way >= (s64)s->window);
	if (!shut && s->attempted & 63 && (!s->rate_mfps || s->credit >= s->price))
		return 1;
	if (shut && ++s->looks & 31)
		return 0;
	now = bpf_ktime_get_ns();
	if (!goes_on(s, now))
		return 0;
	heard = elsewhere ? elsewhere->frames : *(const volatile u64 *)&client->came_bytes + *(const volatile u64 *)&server->came_bytes;
	if (heard != s->heard || !shut) {
		s->heard = heard;
		s->heard_ns = now;
		s->looks = 0;
	} else if (now - s->heard_ns > how->patience_ns && s->looks > PATIENCE_LOOKS) {
		s->given_up += under_way;
		s->idle_ns += now - s->heard_ns;
		s->heard_ns = now;
		return 0;
	}
	return !shut && (!s->rate_mfps || s->credit >= s->price);
}

/* An odd number, and that which undoes a multiplication by it. */
#define SCATTER 0x9e3779b1U
#define GATHER 0xe8b2f51U

/* Writes the addresses, ports and number of a connection. */
inline_always void address(struct frame *f, const struct control *how, const struct opener *s, u32 flow, const int v6)
{
	/* 14 bits of the port, 6 of the client's address and up to 4 of the server's, in an order that scatters them */
	u32 tuple = ((flow + how->first_tuple) * SCATTER) & how->tuples;

	f->macs_low = s->macs_low;
	f->macs_high = s->macs_high;
	__builtin_memcpy(f->source, how->client, 16);
	__builtin_memcpy(f->destination, how->server, 16);
	f->source[v6 ? 3 : 0] = swap32(how->client[3] + ((tuple >> 14) & 63));
	f->destination[v6 ? 3 : 0] = swap32(how->server[3] + (tuple >> 20));
	f->source_port = swap16((u16)(1024 + (tuple & 0x3fff)));
	f->destination_port = swap16(SERVER_PORT);
	f->number = how->epoch << FLOW_BITS | flow;
}

/* The connection of a frame that arrived at a server, by its addresses and ports as `address` wrote them; negative where they are others. */
inline_always int flow_of(const struct control *how, const struct frame *f, const int v6)
{
	u32 client = swap32(f->destination[v6 ? 3 : 0]) - how->client[3], server = swap32(f->source[v6 ? 3 : 0]) - how->server[3];
	u32 port = (u32)swap16(f->destination_port) - 1024;

	if (client > 63 || port > 0x3fff || server > how->tuples >> 20)
		return -1;
	return ((server << 20 | client << 14 | port) * GATHER - how->first_tuple) & how->tuples;
}

/*
 * Writes a SYN of no connection. Those of a flood come from 32,768 addresses that no client has, with 16,384 ports each; illegal ones come
 * from the clients, to a port that no connection has. All pairs of addresses and ports differ until the counter comes round.
 */
inline_always int flood(struct xdp_md *ctx, const struct control *how, struct opener *s, struct seen *at_client, const int v6)
{
	u32 number = s->first + s->flooded, tuple = number * SCATTER;
	struct frame f = {};

	f.macs_low = s->macs_low;
	f.macs_high = s->macs_high;
	__builtin_memcpy(f.source, how->client, 16);
	__builtin_memcpy(f.destination, how->server, 16);
	if (how->illegal) {
		f.source[v6 ? 3 : 0] = swap32(how->client[3] + ((tuple >> 14) & 63));
		f.destination[v6 ? 3 : 0] = swap32(how->server[3] + ((tuple >> 20) & (how->tuples >> 20)));
	} else {
		f.source[v6 ? 3 : 0] = swap32(((how->client[3] & ~0x7fffU) | 0x8000) + ((tuple >> 14) & 0x7fff));
		f.destination[v6 ? 3 : 0] = swap32(how->server[3] + ((tuple >> 29) & (how->tuples >> 20)));
	}
	f.source_port = swap16((u16)(1024 + (tuple & 0x3fff)));
	f.destination_port = swap16(how->illegal ? ILLEGAL_PORT : SERVER_PORT);
	f.seq = first_of_client(FLOOD_EPOCH << FLOW_BITS | (number & ((1 << FLOW_BITS) - 1)));
	f.flags = SYN;
	if (unlikely(write_frame(ctx, &f, v6, 0, 1))) {
		s->refused++;
		return XDP_DROP;
	}
	s->flooded++;
	s->flood_credit -= s->flood_price;
	if (!how->illegal)
		s->flood_price = random_price(&s->flood_late);
	at_client->flood[0]++;
	at_client->flood[1] += ctx->data_end - ctx->data;
	return bpf_redirect_map(&ports, s->target, 0);
}

inline_always int open_connection(struct xdp_md *ctx, const int v6)
{
	u32 cpu = bpf_get_smp_processor_id(), zero = 0, server = CPUS + cpu, flow;
	struct control *how = bpf_map_lookup_elem(&control, &zero);
	struct opener *s = bpf_map_lookup_elem(&openers, &cpu);
	struct seen *at_client = bpf_map_lookup_elem(&ends, &cpu), *at_server = bpf_map_lookup_elem(&ends, &server);
	struct frame f = {};
	long failed;
	u64 *at;

	if (!how || !s || !at_client || !at_server)
		return XDP_DROP;
	if (how->floods && floods(s))
		return flood(ctx, how, s, at_client, v6);
	if (!due(how, s, at_client, at_server))
		return XDP_DROP;
	flow = (s->first + s->attempted) & ((1 << FLOW_BITS) - 1);
	address(&f, how, s, flow, v6);
	if (how->exchange == UDP) {
		f.payload = how->request;
		failed = write_frame(ctx, &f, v6, 1, 0);
	} else {
		f.seq = first_of_client(f.number);
		f.flags = SYN;
		failed = write_frame(ctx, &f, v6, 0, 1);
	}
	if (unlikely(failed)) {
		s->refused++;
		return XDP_DROP;
	}
	if (!(flow & (how->stamp_every - 1))) {
		at = time_of(flow);
		if (at)
			*at = bpf_ktime_get_ns();
	}
	s->attempted++;
	s->left--;
	s->flood_credit += how->illegal;
	if (s->rate_mfps) {
		s->credit -= s->price;
		s->price = random_price(&s->late);
	}
	at_client->went[OPENED]++;
	at_client->went_bytes += ctx->data_end - ctx->data;
	return bpf_redirect_map(&ports, s->target, 0);
}

SEC("xdp") int open4(struct xdp_md *ctx)
{
	return open_connection(ctx, 0);
}

SEC("xdp") int open6(struct xdp_md *ctx)
{
	return open_connection(ctx, 1);
}

/* Goes on with connections that are kept open, in the order in which they were opened: those that have come so far. */
inline_always int resume_connection(struct xdp_md *ctx, const int v6)
{
	u32 cpu = bpf_get_smp_processor_id(), zero = 0, server = CPUS + cpu, flow, stage, c0, s0;
	struct control *how = bpf_map_lookup_elem(&control, &zero);
	struct opener *s = bpf_map_lookup_elem(&openers, &cpu);
	struct seen *at_client = bpf_map_lookup_elem(&ends, &cpu), *at_server = bpf_map_lookup_elem(&ends, &server);
	struct frame f = {};

	if (!how || !s || !at_client || !at_server || !due(how, s, at_client, at_server))
		return XDP_DROP;
	stage = how->resumed;
	flow = (s->first + s->resumed) & ((1 << FLOW_BITS) - 1);
	s->resumed++;
	s->left--;
	if (!is_marked(stage - 1, flow))
		return XDP_DROP;
	address(&f, how, s, flow, v6);
	c0 = first_of_client(f.number);
	s0 = answer_to(c0);
	f.seq = c0 + 1;
	f.ack = s0 + 1;
	f.flags = PSH | ACK;
	f.payload = how->request;
	if (stage == K_ENDED) {
		f.seq += how->request;
		f.ack += how->object;
		f.flags = how->exchange == KEPT ? FIN | ACK : how->exchange == KEPT_RESET ? RST | ACK : ACK;
		f.payload = 0;
	}
	if (unlikely(write_frame(ctx, &f, v6, 0, 0))) {
		s->refused++;
		return XDP_DROP;
	}
	s->attempted++;
	if (s->rate_mfps)
		s->credit -= s->price;
	at_client->went[stage & 7]++;
	at_client->went_bytes += ctx->data_end - ctx->data;
	return bpf_redirect_map(&ports, s->target, 0);
}

SEC("xdp") int resume4(struct xdp_md *ctx)
{
	return resume_connection(ctx, 0);
}

SEC("xdp") int resume6(struct xdp_md *ctx)
{
	return resume_connection(ctx, 1);
}

/* Answering. */

inline_always int stranger(struct seen *seen, u32 kind)
{
	seen->foreign[kind]++;
	return XDP_PASS;
}

/* The frame of `stage` arrived. Returns whether it is new. */
inline_always int arrived(struct seen *seen, u32 stage, u32 flow, u32 bytes)
{
	seen->came[stage]++;
	seen->came_bytes += bytes;
	if (mark(stage, flow)) {
		seen->again[stage]++;
		return 0;
	}
	return 1;
}

#include "ends.h"
#include "web.h"

/* Whether this is the client's first number of a SYN of no connection. */
inline_always int is_number_of_flood(u32 c0)
{
	return !(c0 & 15) && gathered(c0 >> 4) >> FLOW_BITS == FLOOD_EPOCH;
}

/* Counts an ICMP message with which the DUT answered a SYN of no connection: it has the beginning of this SYN behind its own 8 bytes. */
inline_always int is_about_flood(const struct control *how, struct seen *seen, const u8 *message, const u8 *end, const int v6)
{
	const u8 *tcp = message + 8 + IP_LEN(v6);

	if (!how->floods || tcp + 8 > end || !is_number_of_flood(swap32(*(const u32 *)(tcp + 4))))
		return 0;
	seen->flood_answers++;
	return 1;
}

/* Counts a SYN of no connection, known by its number or, where the DUT changes that, by its address or port; or the DUT's answer to one. */
inline_always int is_of_flood(const struct control *how, struct seen *seen, const struct frame *f, u32 bytes, const int is_server, const int v6)
{
	u32 c0 = is_server ? f->seq : f->ack - 1, from = swap32(f->destination[v6 ? 3 : 0]);
	int by_address = TABLE && is_server && (from & ~0x7fffU) == ((how->client[3] & ~0x7fffU) | 0x8000);
	int by_port = TABLE && is_server && how->illegal && f->source_port == swap16(ILLEGAL_PORT);

	if (!(f->flags & (is_server ? SYN : SYN | RST)))
		return 0;
	if (!by_address && !by_port && !is_number_of_flood(c0))
		return 0;
	if (is_server) {
		seen->flood[0]++;
		seen->flood[1] += bytes;
	} else {
		seen->flood_answers++;
	}
	return 1;
}

inline_always int answer(struct xdp_md *ctx, const struct control *how, struct seen *seen, const int is_server, const int v6)
{
	const int l4 = 14 + IP_LEN(v6);
	u8 *data = (u8 *)(long)ctx->data;
	const u8 *end = (u8 *)(long)ctx->data_end;
	const int is_web = !v6 && how->exchange == WEB, gone = is_web && is_server ? XDP_PASS : XDP_DROP;
	u32 bytes = end - data, flow = 0, reply = LAST, proto;
	struct progress *elsewhere;
	struct frame f = {};
	int stage, failed;

	/* the shortest frame that passes is one of TCP without payload, or of UDP with its number */
	if (data + l4 + 16 > end || (!v6 && data[14] != 0x45))
		return stranger(seen, F_OTHER);
	proto = data[v6 ? 20 : 23];
	if ((proto == PROTO_ICMP || proto == PROTO_ICMPV6) && !is_server && is_about_flood(how, seen, data + l4, end, v6))
		return XDP_DROP;
	if (proto == PROTO_ICMP || proto == PROTO_ICMPV6)
		return stranger(seen, proto == PROTO_ICMP ? F_ICMP : F_ICMPV6);
	/* both turned round */
	f.macs_low = *(u32 *)(data + 6) | (u64)*(u16 *)(data + 10) << 32 | (u64)*(u16 *)data << 48;
	f.macs_high = *(u32 *)(data + 2);
	if (v6) {
		__builtin_memcpy(f.source, data + 14 + 24, 16);
		__builtin_memcpy(f.destination, data + 14 + 8, 16);
	} else {
		f.source[0] = *(u32 *)(data + 14 + 16);
		f.destination[0] = *(u32 *)(data + 14 + 12);
	}
	f.source_port = *(u16 *)(data + l4 + 2);
	f.destination_port = *(u16 *)(data + l4);
	if (proto == PROTO_UDP && how->exchange == UDP) {
		struct udp *got = (struct udp *)(data + l4);

		if (got->magic != NUMBER_MAGIC)
			return stranger(seen, F_OTHER);
		f.number = got->number;
		stage = next_of_udp(how, &f, is_server, &flow, &reply);
	} else if (proto == PROTO_TCP && how->exchange != UDP) {
		struct tcp *got = (struct tcp *)(data + l4);

		if (data + l4 + 20 > end)
			return stranger(seen, F_OTHER);
		f.seq = swap32(got->seq);
		f.ack = swap32(got->ack);
		f.flags = got->offset_flags >> 8 & 0x3f;
		f.shut = !got->window;
		if (how->floods && is_of_flood(how, seen, &f, bytes, is_server, v6))
			return XDP_DROP;
		if (is_web) {
			const u32 head = (got->offset_flags & 0xf0) >> 2;

			f.got = (u16)(swap16(*(u16 *)(data + 16)) - 20 - head);
			f.refuses = head == 20 && is_refusal(data + l4 + 20, end);
			stage = is_server ? next_of_web_server(how, &f, &flow) : next_of_web_client(how, seen, &f, &flow, &reply);
		} else if (how->exchange >= KEPT)
			stage = is_server ? next_of_kept_server(how, &f, &flow, &reply) : next_of_kept_client(how, &f, &flow, &reply);
		else
			stage = is_server ? next_of_server(how, &f, &flow, &reply, v6) : next_of_client(how, seen, &f, &flow, &reply);
	} else {
		return stranger(seen, F_OTHER);
	}
	if (stage == IS_ACK || stage == IS_PART) {
		seen->acks[0] += stage == IS_ACK;
		seen->parts += stage == IS_PART;
		seen->came_bytes += bytes;
		if (reply == LAST)
			return gone;
	} else if (unlikely(stage < 0)) {
		if (stage == IS_STALE)
			seen->stale++;
		else if (stage == IS_CHANGED)
			seen->changed++;
		return stage == IS_RESET ? stranger(seen, F_RESET) : gone;
	} else if (!arrived(seen, stage, flow, bytes)) {
		return gone;
	}
	if (!(flow & (how->stamp_every - 1)) && stage == how->timed)
		count_time(flow);
	if (gone == XDP_PASS)
		return gone;
	elsewhere = is_server ? 0 : progress_of(how, flow);
	if (elsewhere) {
		elsewhere->frames++;
		if (reply == LAST)
			__sync_fetch_and_add(&elsewhere->closed, 1);
	}
	if (reply == LAST) {
		seen->closed++;
		return XDP_DROP;
	}
	if (how->exchange == UDP)
		failed = write_frame(ctx, &f, v6, 1, 0);
	else if (reply == ANSWERED)
		failed = write_frame(ctx, &f, v6, 0, 1);
	else
		failed = write_frame(ctx, &f, v6, 0, 0);
	if (unlikely(failed)) {
		seen->unwritten++;
		return XDP_DROP;
	}
	if (reply == BARE_ACK)
		seen->acks[1]++;
	else
		seen->went[reply & 15]++;
	seen->went_bytes += ctx->data_end - ctx->data;
	return how->turn == XDP_TX ? XDP_TX : bpf_redirect(ctx->ingress_ifindex, 0);
}

inline_always int end_of(struct xdp_md *ctx, const int is_server)
{
	u8 *data = (u8 *)(long)ctx->data;
	const u8 *end = (u8 *)(long)ctx->data_end;
	u32 index = bpf_get_smp_processor_id() + (is_server ? CPUS : 0), zero = 0;
	struct control *how = bpf_map_lookup_elem(&control, &zero);
	struct seen *seen = bpf_map_lookup_elem(&ends, &index);
	int action;
	u16 type;

	if (!how || !seen || data + 14 > end)
		return XDP_DROP;
	type = *(u16 *)(data + 12);
	if (type == swap16(ETH_IPV4))
		action = answer(ctx, how, seen, is_server, 0);
	else if (type == swap16(ETH_IPV6))
		action = answer(ctx, how, seen, is_server, 1);
	else
		action = stranger(seen, type == swap16(ETH_ARP) ? F_ARP : F_OTHER);
	return action == XDP_PASS && !how->passes ? XDP_DROP : action;
}

SEC("xdp") int client(struct xdp_md *ctx)
{
	return end_of(ctx, 0);
}

SEC("xdp") int server(struct xdp_md *ctx)
{
	return end_of(ctx, 1);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
