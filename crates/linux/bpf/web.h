/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ends of connections that a server of HTTP answers (WEB). A kernel chooses the server's numbers, so the client keeps the next one of each
 * connection in its table. The server's end only looks at what arrives, and lets it pass. For connections.bpf.c.
 */
#pragma once

#define IS_PART -5 /* a segment of the server that is of no stage: a part of its answer, a bare ACK, or one that was sent again */

/* Whether the answer begins with another status than 200. */
inline_always int is_refusal(const u8 *text, const u8 *end)
{
	return text + 12 <= end && *(u32 *)text == 0x50545448 /* HTTP */ && *(u32 *)(text + 8) != 0x30303220 /* 200 behind a blank */;
}

/*
 * c0 has four low bits of 0: so those of an ACK say what of the client it is for. The answer may have any number of segments, in their
 * order; each is acknowledged as it comes.
 */
inline_always int next_of_web_client(const struct control *how, struct seen *seen, struct frame *f, u32 *flow, u32 *reply)
{
	u32 request = how->request, low = f->ack & 15, c0, number, *next;
	int stage = IS_PART;

	if (f->flags & RST)
		return IS_RESET;
	if (f->flags & SYN)
		stage = ANSWERED;
	else if (low == 1)
		stage = IS_ACK; /* of a SYN proxy that has reached the server: now it takes the request */
	else if (low == ((2 + request) & 15))
		stage = CLOSED;
	else if (f->flags & FIN)
		stage = TOLD;
	c0 = f->ack - (stage == ANSWERED || stage == IS_ACK ? 1 : stage == CLOSED ? 2 + request : 1 + request);
	number = gathered(c0 >> 4);
	if (c0 & 15)
		return IS_CHANGED;
	/* a server goes on with connections of an earlier load */
	if (number >> FLOW_BITS != how->epoch)
		return IS_PART;
	*flow = number & ((1 << FLOW_BITS) - 1);
	next = peer_of(*flow, 0);
	if (!next)
		return IS_CHANGED;
	if (stage == ANSWERED) {
		*next = f->seq + 1;
		seen->shut += f->shut;
	} else if (f->seq != *next) {
		return IS_PART;
	} else {
		*next += f->got + (f->flags & FIN);
		seen->read += f->got;
		seen->refused += f->refuses;
	}
	f->seq = c0 + 1;
	f->ack = *next;
	f->flags = ACK;
	f->payload = 0;
	if (stage == IS_ACK || (stage == ANSWERED && !f->shut)) {
		f->flags = PSH | ACK;
		f->payload = request;
		f->asks = 1;
		*reply = ASKED;
	} else if (stage == ANSWERED) {
		*reply = BARE_ACK;
	} else if (stage == TOLD) {
		f->seq += request;
		f->flags = FIN | ACK;
		*reply = ENDED;
	} else if (stage == IS_PART && f->got) {
		f->seq += request;
		*reply = BARE_ACK;
	}
	return stage;
}

/* Frames are known by their addresses and ports, or by the client's number where these were translated. */
inline_always int next_of_web_server(const struct control *how, const struct frame *f, u32 *flow)
{
	int stage = f->flags & SYN ? OPENED : f->flags & FIN ? ENDED : f->got ? ASKED : IS_ACK, known = flow_of(how, f, 0);
	u32 c0 = f->seq - (stage == OPENED ? 0 : stage == ASKED ? 1 : 1 + how->request), number = gathered(c0 >> 4);

	if (f->flags & RST)
		return IS_RESET;
	if (stage == IS_ACK)
		return IS_ACK;
	if (known < 0 && c0 & 15)
		return IS_CHANGED;
	if (known < 0 && number >> FLOW_BITS != how->epoch)
		return IS_STALE;
	*flow = known < 0 ? number & ((1 << FLOW_BITS) - 1) : (u32)known;
	return stage;
}
