/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The frames of connections: what they consist of, and how they are written. For connections.bpf.c. */
#pragma once

struct tcp {
	u16 source;
	u16 destination;
	u32 seq;
	u32 ack;
	u16 offset_flags;
	u16 window;
	u16 check;
	u16 urgent;
} __attribute__((packed));

struct udp {
	u16 source;
	u16 destination;
	u16 length;
	u16 check;
	u32 magic;
	u32 number;
} __attribute__((packed));

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define NUMBER_MAGIC 0x43524e4cU /* "LNRC" */
#define SERVER_PORT 80
#define ILLEGAL_PORT 81
#define LEAST_FRAME 60
#define MOST_PAYLOAD 1454
#define FILL 0x7878787878787878ULL
/* The request of HTTP, in words of its bytes: `GET / HTTP/1.0` and two ends of lines. Its 18 bytes modulo 16 are neither 0 nor 15. */
#define ASKS_1 0x5448202f20544547ULL
#define ASKS_2 0x0a0d302e312f5054ULL
#define LINE_END 0x0a0d

/* A frame to be written. Addresses are in wire order. */
struct frame {
	u64 macs_low;
	u32 macs_high;
	u32 source[4];
	u32 destination[4];
	u16 source_port;
	u16 destination_port;
	u32 seq;
	u32 ack;
	u32 flags;
	u32 payload;
	u32 number;        /* of UDP */
	u32 shut;          /* whether the frame that arrived has a window of 0... */
	u32 got;           /* ...its bytes of payload... */
	u32 refuses;       /* ...and whether it begins an answer with another status than 200 */
	u32 asks;          /* whether the payload is a request of HTTP */
};

inline_always u64 sum_words(const u32 *words, int n)
{
	u64 sum = 0;
	int i;

#pragma clang loop unroll(full)
	for (i = 0; i < n; i++)
		sum += words[i];
	return sum;
}

/* Sum of `n` bytes of payload. */
inline_always u64 payload_sum(u32 n)
{
	return (u64)(n >> 1) * 0x7878 + (n & 1 ? 0x78 : 0);
}

/* Writes the payload from an offset that the program knows. */
inline_always void fill(u8 *data, const u8 *end, u32 from, u32 bytes)
{
	u8 *at = data + from;
	u32 i;

	for (i = 0; i < MOST_PAYLOAD / 8 + 1; i++) {
		if (at + 8 > end || i * 8 >= bytes)
			break;
		*(u64 *)at = FILL;
		at += 8;
		barrier_var(at); /* otherwise clang calls memset, which there is not */
	}
	for (i = 0; i < 8; i++) {
		if (at + 1 > end)
			break;
		*at++ = 0x78;
		barrier_var(at);
	}
}

#define IP_LEN(v6) ((v6) ? 40 : 20)

/* Makes the frame as long as it has to be, and writes all of it. Constants: v6, udp, and whether it has the option of a SYN. */
inline_always long write_frame(struct xdp_md *ctx, const struct frame *f, const int v6, const int udp, const int option)
{
	const int ip = 14, l4 = ip + IP_LEN(v6), head = l4 + (udp ? 16 : option ? 24 : 20);
	u32 l4_len = head - l4 + (udp ? f->payload - 8 : f->payload), len = l4 + l4_len;
	u32 now = ctx->data_end - ctx->data;
	u8 *data, *end;
	u64 sum;

	if (len < LEAST_FRAME)
		len = LEAST_FRAME;
	/* frames that a DUT made itself have little room behind them, and some before them */
	if (now != len && bpf_xdp_adjust_tail(ctx, (int)len - (int)now) && bpf_xdp_adjust_head(ctx, (int)now - (int)len))
		return -1;
	data = (u8 *)(long)ctx->data;
	end = (u8 *)(long)ctx->data_end;
	if (data + head > end)
		return -1;
	*(u64 *)data = f->macs_low;
	*(u32 *)(data + 8) = f->macs_high;
	sum = sum_words(f->source, v6 ? 4 : 1) + sum_words(f->destination, v6 ? 4 : 1);
	if (v6) {
		*(u16 *)(data + 12) = swap16(ETH_IPV6);
		*(u32 *)(data + ip) = swap32(0x60000000);
		*(u16 *)(data + ip + 4) = swap16((u16)l4_len);
		data[ip + 6] = udp ? PROTO_UDP : PROTO_TCP;
		data[ip + 7] = 64;
		__builtin_memcpy(data + ip + 8, f->source, 16);
		__builtin_memcpy(data + ip + 24, f->destination, 16);
	} else {
		u16 total = swap16((u16)(20 + l4_len));
		/* version and length, DF, time to live and protocol: the rest of the sum is the same in each frame */
		u64 header = sum + 0x0045 + total + 0x0040 + (udp ? 0x1140 : 0x0640);

		*(u16 *)(data + 12) = swap16(ETH_IPV4);
		*(u16 *)(data + ip) = 0x0045;
		*(u16 *)(data + ip + 2) = total;
		*(u32 *)(data + ip + 4) = swap32(0x00004000);
		*(u16 *)(data + ip + 8) = udp ? 0x1140 : 0x0640;
		*(u16 *)(data + ip + 10) = ~fold(header);
		*(u32 *)(data + ip + 12) = f->source[0];
		*(u32 *)(data + ip + 16) = f->destination[0];
	}
	sum += (u64)swap16((u16)l4_len) + (udp ? 0x1100 : 0x0600) + f->source_port + f->destination_port;
	if (udp) {
		struct udp *to = (struct udp *)(data + l4);

		to->source = f->source_port;
		to->destination = f->destination_port;
		to->length = swap16((u16)l4_len);
		to->magic = NUMBER_MAGIC;
		to->number = f->number;
		sum += (u64)swap16((u16)l4_len) + NUMBER_MAGIC + f->number + payload_sum(f->payload - 8);
		to->check = ~fold(sum);
		if (!to->check)
			to->check = 0xffff;
		fill(data, end, head, f->payload - 8);
	} else {
		struct tcp *to = (struct tcp *)(data + l4);

		to->source = f->source_port;
		to->destination = f->destination_port;
		to->seq = swap32(f->seq);
		to->ack = swap32(f->ack);
		to->offset_flags = (option ? 0x60 : 0x50) | f->flags << 8;
		to->window = 0xffff;
		to->urgent = 0;
		sum += (u64)to->seq + to->ack + to->offset_flags + to->window;
		sum += f->asks ? (u32)ASKS_1 + (ASKS_1 >> 32) + (u32)ASKS_2 + (ASKS_2 >> 32) + LINE_END : payload_sum(f->payload);
		if (option) {
			/* a maximum segment size of 1,460 bytes */
			*(u32 *)(data + l4 + 20) = swap32(0x020405b4);
			sum += swap32(0x020405b4);
		}
		to->check = ~fold(sum);
		fill(data, end, head, f->payload);
		if (f->asks) {
			if (data + head + 18 > end)
				return -1;
			*(u64 *)(data + head) = ASKS_1;
			*(u64 *)(data + head + 8) = ASKS_2;
			*(u16 *)(data + head + 16) = LINE_END;
		}
	}
	return 0;
}
