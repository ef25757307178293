/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Numbers and stages of connections, and how both ends behave: in step with ports/connections.rs. For connections.bpf.c. */
#pragma once

#define FLOW_BITS 24
#define WORDS (1 << (FLOW_BITS - 6)) /* of the bits of a stage */
#define EPOCH_BITS 4
#define FLOOD_EPOCH 15 /* of numbers of no connection */

/* Stages: first frame at the server, its answer at the client, and so on. */
enum stage { OPENED, ANSWERED, ASKED, TOLD, ENDED, CLOSED };

/* The other stages of connections that are kept open. */
enum stage_kept { K_OPEN = 2, K_ASKED, K_TOLD, K_ENDED, K_PARTED, K_CLOSED, K_CONFIRMED, STAGES };

/*
 * The three before the last are of connections that are kept open; the server closes those of KEPT_SERVER, and the client resets those of
 * KEPT_RESET. A server of HTTP answers those of WEB.
 */
enum exchange { REQUEST, GREETING, RESET, HALF, UDP, KEPT, KEPT_SERVER, KEPT_RESET, WEB };

/* How both ends behave, for the present load. */
struct control {
	u32 exchange;
	u32 epoch;
	u32 request;       /* bytes of payload of the client */
	u32 object;        /* bytes of payload of the server */
	u32 turn;          /* XDP_TX, or XDP_REDIRECT to the own interface */
	u32 first_tuple;   /* addresses and ports of connection 0 */
	u32 client[4];     /* addresses, wire order; the last word is the machine's, and a number is added to it */
	u32 server[4];
	u32 stamp_every;   /* connections; a power of 2 */
	u32 tuples;        /* a mask: pairs of addresses and ports, less 1 */
	u32 resumed;       /* stage of kept connections that the next frame belongs to: K_ASKED or K_ENDED */
	u32 floods;        /* whether SYNs of no connection are sent, too */
	u32 timed;         /* stage whose arrival ends the time to open */
	u32 passes;        /* whether frames of no connection go to the host's own stack */
	u32 each;          /* connections of each thread that opens them, which may close on any CPU; 0: on the one that opened them */
	u32 patience_ns;   /* how long those under way may say nothing */
	u64 illegal;       /* of SYNs of no connection: in 1e-12, how many illegal ones come with each connection; 0: a flood, with a rate */
};

/*
 * Whether a table says with which number the other end began each connection: the DUT may be one that changes sequence numbers. If not,
 * each end computes the other's from its own.
 */
const volatile u32 TABLE = 0;

#define MASK28 ((1U << (FLOW_BITS + EPOCH_BITS)) - 1)

/* A permutation of 28 bits: two multiplications by odd numbers around a shift that undoes itself. */
inline_always u32 scattered(u32 x)
{
	x = (x * 0xe3779b1) & MASK28;
	x ^= x >> 14;
	return (x * 0x5ebca77) & MASK28;
}

inline_always u32 gathered(u32 x)
{
	x = (x * 0x6c92f47) & MASK28;
	x ^= x >> 14;
	return (x * 0xe8b2f51) & MASK28;
}

/* The client's first sequence number. Like the server's, it has four low bits of 0. */
inline_always u32 first_of_client(u32 number)
{
	return scattered(number) << 4;
}

/* The server's first sequence number where there is a table, and the connection that has it. */
inline_always u32 first_of_server(u32 number)
{
	return ~scattered(number) << 4;
}

inline_always u32 number_of_server(u32 s0)
{
	return gathered(~(s0 >> 4) & MASK28);
}

/* The server's first sequence number, of the client's, where there is no table. */
inline_always u32 answer_to(u32 c0)
{
	u32 x = c0 ^ (c0 >> 16);

	x *= 0x7feb352d;
	x ^= x >> 15;
	x *= 0x846ca68b;
	return (x ^ (x >> 16)) & ~15U;
}
