/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Both ends of connections: the stage of a frame that arrived, and the next frame. For connections.bpf.c. */
#pragma once

#include "numbers.h"

/*
 * An end of TCP. `f` has the arrived frame's numbers and flags, and gets those of the next one. Returns the stage of the arrived frame,
 * or a negative number.
 */
#define IS_STALE -1
#define IS_CHANGED -2
#define IS_RESET -3
#define IS_ACK -4      /* a bare ACK of no stage, which a SYN proxy sends; there may be an answer to it */
#define LAST 16
#define BARE_ACK 17

/* With which number the other end began a connection, as this end sees it. */
inline_always u32 *peer_of(u32 flow, const int is_server)
{
	u32 index = flow | (u32)is_server << FLOW_BITS;

	return bpf_map_lookup_elem(&peers, &index);
}

inline_always int next_of_client(const struct control *how, struct seen *seen, struct frame *f, u32 *flow, u32 *reply)
{
	u32 request = how->exchange == REQUEST || how->exchange == RESET ? how->request : 0, c0, number, stage, expected, s0, *peer;

	if (f->flags & RST)
		return IS_RESET;
	if (f->flags & SYN) {
		stage = ANSWERED;
		c0 = f->ack - 1;
	} else if (f->flags & FIN) {
		stage = TOLD;
		c0 = f->ack - 1 - request;
	} else if (TABLE && (f->ack & 15) == 1) {
		/* of a SYN proxy that has reached the server: now it takes the request */
		stage = ASKED;
		c0 = f->ack - 1;
	} else {
		stage = CLOSED;
		c0 = f->ack - 2 - request;
	}
	number = gathered(c0 >> 4);
	if (c0 & 15)
		return IS_CHANGED;
	if (number >> FLOW_BITS != how->epoch)
		return IS_STALE;
	*flow = number & ((1 << FLOW_BITS) - 1);
	f->number = number;
	if (TABLE) {
		peer = peer_of(*flow, 0);
		if (!peer)
			return IS_CHANGED;
		if (stage == ANSWERED) {
			*peer = f->seq;
			seen->shifted += f->seq != first_of_server(number);
			seen->shut += f->shut;
		}
		s0 = *peer;
	} else {
		s0 = answer_to(c0);
	}
	expected = stage == ANSWERED ? s0 : stage == CLOSED ? s0 + 2 + how->object : s0 + 1;
	if (f->seq != expected)
		return IS_CHANGED;
	if (TABLE && stage == ASKED) {
		f->seq = c0 + 1;
		f->ack = s0 + 1;
		f->flags = PSH | ACK;
		f->payload = request;
		if (request)
			*reply = ASKED;
		return IS_ACK;
	}
	if (TABLE && stage == ANSWERED && f->shut && request) {
		f->seq = c0 + 1;
		f->ack = s0 + 1;
		f->flags = ACK;
		f->payload = 0;
		*reply = BARE_ACK;
	} else if (stage == ANSWERED) {
		f->seq = c0 + 1;
		f->ack = s0 + 1;
		f->flags = request ? PSH | ACK : ACK;
		f->payload = request;
		*reply = ASKED;
	} else if (stage == TOLD) {
		f->seq = c0 + 1 + request;
		f->ack = s0 + 2 + how->object;
		f->flags = how->exchange == RESET ? RST | ACK : FIN | ACK;
		f->payload = 0;
		*reply = ENDED;
	} else {
		*reply = LAST;
	}
	return stage;
}

/*
 * The numbers of a frame at a server with a table: SYNs are known by their addresses and ports, or by their number where these were
 * translated; the other frames by the server's own number, which the DUT turns back. Returns the stage, or a negative number.
 */
inline_always int look_up(const struct control *how, const struct frame *f, u32 stage, u32 request, u32 *c0, u32 *s0, u32 *number, const int v6)
{
	u32 *peer;
	int flow;

	if (stage == OPENED) {
		flow = flow_of(how, f, v6);
		*number = flow < 0 ? gathered(f->seq >> 4) : how->epoch << FLOW_BITS | (u32)flow;
		if (flow < 0 && (f->seq & 15 || *number >> FLOW_BITS != how->epoch))
			return IS_CHANGED;
		*s0 = first_of_server(*number);
	} else {
		*s0 = f->ack - (stage == ASKED ? 1 : 2 + how->object);
		*number = number_of_server(*s0);
		if (*s0 & 15)
			return IS_CHANGED;
		if (*number >> FLOW_BITS != how->epoch)
			return IS_STALE;
	}
	peer = peer_of(*number & ((1 << FLOW_BITS) - 1), 1);
	if (!peer)
		return IS_CHANGED;
	if (stage == OPENED)
		*peer = f->seq;
	*c0 = *peer;
	if (f->seq != (stage == OPENED ? *c0 : stage == ASKED ? *c0 + 1 : *c0 + 1 + request))
		return IS_CHANGED;
	return stage == ASKED && request && !(f->flags & PSH) ? IS_ACK : (int)stage;
}

inline_always int next_of_server(const struct control *how, struct frame *f, u32 *flow, u32 *reply, const int v6)
{
	u32 request = how->exchange == REQUEST || how->exchange == RESET ? how->request : 0, c0, number, stage, s0;
	int known;

	if (f->flags & RST && how->exchange != RESET)
		return IS_RESET;
	if (f->flags & SYN) {
		stage = OPENED;
		c0 = f->seq;
	} else if (f->flags & (how->exchange == RESET ? RST : FIN)) {
		stage = ENDED;
		c0 = f->seq - 1 - request;
	} else {
		stage = ASKED;
		c0 = f->seq - 1;
	}
	if (TABLE) {
		known = look_up(how, f, stage, request, &c0, &s0, &number, v6);
		if (known < 0)
			return known == IS_CHANGED && f->flags & RST ? IS_RESET : known;
	} else {
		number = gathered(c0 >> 4);
		if (c0 & 15)
			return f->flags & RST ? IS_RESET : IS_CHANGED;
		if (number >> FLOW_BITS != how->epoch)
			return IS_STALE;
		s0 = answer_to(c0);
		if (stage == ASKED ? f->ack != s0 + 1 : stage == ENDED ? f->ack != s0 + 2 + how->object : 0)
			return IS_CHANGED;
	}
	*flow = number & ((1 << FLOW_BITS) - 1);
	f->number = number;
	if (stage == OPENED) {
		f->seq = s0;
		f->ack = c0 + 1;
		f->flags = SYN | ACK;
		f->payload = 0;
		*reply = how->exchange == HALF ? LAST : ANSWERED;
	} else if (stage == ASKED) {
		f->seq = s0 + 1;
		f->ack = c0 + 1 + request;
		f->flags = FIN | PSH | ACK;
		f->payload = how->object;
		*reply = TOLD;
	} else {
		f->seq = s0 + 2 + how->object;
		f->ack = c0 + 2 + request;
		f->flags = ACK;
		f->payload = 0;
		*reply = how->exchange == RESET ? LAST : CLOSED;
	}
	return stage;
}

/*
 * Ends of connections that are kept open. c0 has four low bits of 0, and the request 6 bytes: so the low bits of the client's sequence
 * numbers tell its last ACK from its first one and from the request, which has PSH. Where the server closes, its last ACK has no PSH, as
 * its answer has.
 */
inline_always int next_of_kept_client(const struct control *how, struct frame *f, u32 *flow, u32 *reply)
{
	u32 c0, number, stage, expected, s0;

	if (f->flags & RST)
		return IS_RESET;
	if (f->flags & SYN) {
		stage = ANSWERED;
		c0 = f->ack - 1;
	} else if (f->flags & FIN) {
		stage = K_PARTED;
		c0 = f->ack - (how->exchange == KEPT_SERVER ? 1 : 2) - how->request;
	} else if (how->exchange == KEPT_SERVER && !(f->flags & PSH)) {
		stage = K_CONFIRMED;
		c0 = f->ack - 2 - how->request;
	} else {
		stage = K_TOLD;
		c0 = f->ack - 1 - how->request;
	}
	number = gathered(c0 >> 4);
	if (c0 & 15)
		return IS_CHANGED;
	if (number >> FLOW_BITS != how->epoch)
		return IS_STALE;
	s0 = answer_to(c0);
	expected = stage == ANSWERED ? s0 : stage == K_TOLD ? s0 + 1 : s0 + 1 + how->object + (stage == K_CONFIRMED);
	if (f->seq != expected)
		return IS_CHANGED;
	*flow = number & ((1 << FLOW_BITS) - 1);
	f->number = number;
	f->payload = 0;
	f->flags = ACK;
	if (stage == ANSWERED) {
		f->seq = c0 + 1;
		f->ack = s0 + 1;
		*reply = K_OPEN;
	} else if (stage == K_PARTED) {
		f->seq = c0 + 2 + how->request;
		f->ack = s0 + 2 + how->object;
		if (how->exchange == KEPT_SERVER) {
			f->seq = c0 + 1 + how->request;
			f->flags = FIN | ACK;
		}
		*reply = K_CLOSED;
	} else {
		*reply = LAST;
	}
	return stage;
}

inline_always int next_of_kept_server(const struct control *how, struct frame *f, u32 *flow, u32 *reply)
{
	u32 c0, number, stage, expected, s0;

	if (f->flags & RST && how->exchange != KEPT_RESET)
		return IS_RESET;
	if (f->flags & SYN) {
		stage = OPENED;
		c0 = f->seq;
	} else if (f->flags & (FIN | RST)) {
		stage = how->exchange == KEPT_SERVER ? K_CLOSED : K_ENDED;
		c0 = f->seq - 1 - how->request;
	} else if (how->exchange == KEPT_SERVER && (f->seq & 15) != 1) {
		stage = K_ENDED;
		c0 = f->seq - 1 - how->request;
	} else if ((f->seq & 15) == 1) {
		stage = f->flags & PSH ? K_ASKED : K_OPEN;
		c0 = f->seq - 1;
	} else {
		stage = K_CLOSED;
		c0 = f->seq - 2 - how->request;
	}
	number = gathered(c0 >> 4);
	if (c0 & 15)
		return f->flags & RST ? IS_RESET : IS_CHANGED;
	if (number >> FLOW_BITS != how->epoch)
		return IS_STALE;
	s0 = answer_to(c0);
	expected = stage == K_ENDED ? s0 + 1 + how->object : stage == K_CLOSED ? s0 + 2 + how->object : s0 + 1;
	if (stage != OPENED && f->ack != expected)
		return IS_CHANGED;
	*flow = number & ((1 << FLOW_BITS) - 1);
	f->number = number;
	f->payload = 0;
	*reply = LAST;
	if (stage == OPENED) {
		f->seq = s0;
		f->ack = c0 + 1;
		f->flags = SYN | ACK;
		*reply = ANSWERED;
	} else if (stage == K_ASKED) {
		f->seq = s0 + 1;
		f->ack = c0 + 1 + how->request;
		f->flags = PSH | ACK;
		f->payload = how->object;
		*reply = K_TOLD;
	} else if (stage == K_ENDED && how->exchange != KEPT_RESET) {
		f->seq = s0 + 1 + how->object;
		f->ack = c0 + 1 + how->request + (how->exchange == KEPT);
		f->flags = FIN | ACK;
		*reply = K_PARTED;
	} else if (stage == K_CLOSED && how->exchange == KEPT_SERVER) {
		f->seq = s0 + 2 + how->object;
		f->ack = c0 + 2 + how->request;
		f->flags = ACK;
		*reply = K_CONFIRMED;
	}
	return stage;
}

/* UDP: a request, and its answer. */
inline_always int next_of_udp(const struct control *how, struct frame *f, const int is_server, u32 *flow, u32 *reply)
{
	u32 number = f->number;

	if (number >> FLOW_BITS != how->epoch)
		return IS_STALE;
	*flow = number & ((1 << FLOW_BITS) - 1);
	f->payload = how->object;
	*reply = is_server ? ANSWERED : LAST;
	return is_server ? OPENED : ANSWERED;
}
