/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs that make a DUT: XDP forwarding by the kernel's own routing table, and DUTs whose behaviour is known exactly
 * (rate, loss, delay, duplication), against which linerate proves its own measurements.
 */
#include "linerate.h"

struct known {
	u64 seen;
	u64 dropped;
	u64 duplicated;
	u64 matched;       /* frames of the kind that is to be lost, in this load */
	u64 pad[4];
};

struct bucket {
	u64 last_ns;
	u64 credit;
};

const volatile u32 RATE = 0;       /* frames/s that pass */
const volatile u32 ONE_IN = 0;     /* every ONE_IN-th frame is lost or doubled */
const volatile u32 OF = 0;         /* the kind of frame that is lost: see known_loss_of */
const volatile u32 DELAY_NS = 0;
const volatile u32 OTHER_DELAY_NS = 0; /* of every second frame */
const volatile u32 QUEUE = 0;      /* frames that pass at once */
const volatile u32 SHIFT = 0;      /* of sequence numbers */
const volatile u64 OUT_AFTER_NS = 0; /* from the first frame of a load */
const volatile u64 OUT_NS = 0;

SHARED_ARRAY(known, struct known, 1); /* CPUs */

ARRAY(buckets, struct bucket, 1); /* CPUs */

/* When the load's first frame came; user space clears it before a load. */
SHARED_ARRAY(first, u64, 1);

MAP(egress, DEVMAP, 4, 4, 1);

/* struct bpf_fib_lookup of include/uapi/linux/bpf.h, as far as it is used here. */
struct fib {
	u8 family;
	u8 protocol;
	u16 sport;
	u16 dport;
	u16 total_length;
	u32 ifindex;
	u32 tos_or_flowinfo;
	u32 source[4];
	u32 destination[4];
	u32 vlan;
	u8 source_mac[6];
	u8 destination_mac[6];
};

#define FAMILY_IPV4 2
#define FAMILY_IPV6 10

/* In steps of two bytes: on the stack, these are no more aligned than that. */
inline_always void copy_mac(u8 *to, const u8 *from)
{
	u32 i;

	for (i = 0; i < 6; i += 2)
		*(u16 *)(to + i) = *(const u16 *)(from + i);
}

/* Forwards as the kernel would, where its tables have the answer; everything else goes up the stack. */
SEC("xdp") int xdp_forward(struct xdp_md *ctx)
{
	u8 *data = (u8 *)(long)ctx->data, *end = (u8 *)(long)ctx->data_end, *ip = data + 14;
	struct fib fib = {};
	u32 i;

	if (ip + 20 > end)
		return XDP_PASS;
	fib.ifindex = ctx->ingress_ifindex;
	if (*(u16 *)(data + 12) == swap16(ETH_IPV4)) {
		if (ip[8] <= 1)
			return XDP_PASS;
		fib.family = FAMILY_IPV4;
		fib.protocol = ip[9];
		fib.total_length = swap16(*(u16 *)(ip + 2));
		fib.tos_or_flowinfo = ip[1];
		fib.source[0] = *(u32 *)(ip + 12);
		fib.destination[0] = *(u32 *)(ip + 16);
	} else if (*(u16 *)(data + 12) == swap16(ETH_IPV6)) {
		if (ip + 40 > end || ip[7] <= 1)
			return XDP_PASS;
		fib.family = FAMILY_IPV6;
		fib.protocol = ip[6];
		fib.total_length = swap16(*(u16 *)(ip + 4));
		for (i = 0; i < 4; i++) {
			fib.source[i] = *(u32 *)(ip + 8 + 4 * i);
			fib.destination[i] = *(u32 *)(ip + 24 + 4 * i);
		}
	} else {
		return XDP_PASS;
	}
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0))
		return XDP_PASS;
	if (fib.family == FAMILY_IPV4) {
		/* RFC 1624: TTL is the high byte of its word, so the sum grows by 0x0100 in wire order */
		u32 check = *(u16 *)(ip + 10) + 1u;

		check = (check & 0xffff) + (check >> 16);
		*(u16 *)(ip + 10) = check;
		ip[8]--;
	} else {
		ip[7]--;
	}
	copy_mac(data, fib.destination_mac);
	copy_mac(data + 6, fib.source_mac);
	return bpf_redirect_map(&egress, 0, XDP_DROP);
}

inline_always struct known *count(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct known *k = bpf_map_lookup_elem(&known, &cpu);

	if (k)
		k->seen++;
	return k;
}

/* Passes RATE frames/s and drops the rest, with a tenth of a second of credit, so that stalls do not lower the average. */
SEC("xdp") int known_rate(struct xdp_md *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct bucket *b = bpf_map_lookup_elem(&buckets, &cpu);
	struct known *k = count();
	u64 now = bpf_ktime_get_ns(), elapsed;

	if (!b || !k)
		return XDP_ABORTED;
	elapsed = now - b->last_ns;
	b->last_ns = now;
	if (elapsed > 100000000)
		elapsed = 0; /* the pause before a trial earns nothing */
	b->credit += elapsed * RATE;
	if (b->credit > 100000000ULL * RATE)
		b->credit = 100000000ULL * RATE;
	if (b->credit < 1000000000ULL) {
		k->dropped++;
		return XDP_DROP;
	}
	b->credit -= 1000000000ULL;
	return XDP_PASS;
}

/* A queue of QUEUE frames that is drained at RATE: what it has no room for is lost, and what it has room for passes at once. */
SEC("xdp") int known_queue(struct xdp_md *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct bucket *b = bpf_map_lookup_elem(&buckets, &cpu);
	struct known *k = count();
	u64 now = bpf_ktime_get_ns(), elapsed, full = QUEUE * 1000000000ULL;

	if (!b || !k)
		return XDP_ABORTED;
	elapsed = now - b->last_ns;
	b->last_ns = now;
	b->credit = elapsed > 1000000000 ? full : b->credit + elapsed * RATE;
	if (b->credit > full)
		b->credit = full;
	if (b->credit < 1000000000ULL) {
		k->dropped++;
		return XDP_DROP;
	}
	b->credit -= 1000000000ULL;
	return XDP_PASS;
}

/* Drops everything for OUT_NS, from OUT_AFTER_NS after the load's first frame on. */
SEC("xdp") int known_outage(struct xdp_md *ctx)
{
	u32 zero = 0;
	u64 *began = bpf_map_lookup_elem(&first, &zero), now = bpf_ktime_get_ns(), lasted;
	struct known *k = count();

	if (!began || !k)
		return XDP_ABORTED;
	if (unlikely(!*(volatile u64 *)began))
		__sync_val_compare_and_swap(began, 0, now);
	lasted = now - *(volatile u64 *)began;
	if (lasted < OUT_AFTER_NS || lasted - OUT_AFTER_NS >= OUT_NS)
		return XDP_PASS;
	k->dropped++;
	return XDP_DROP;
}

SEC("xdp") int known_loss(struct xdp_md *ctx)
{
	struct known *k = count();

	if (k && k->seen % ONE_IN == 0) {
		k->dropped++;
		return XDP_DROP;
	}
	return XDP_PASS;
}

#define OPENS 0
#define GOES_ON 1
#define ENDS 2

/* Of one direction's frames of connections: the first ones, those that end them, or those in between. Others pass. */
SEC("xdp") int known_loss_of(struct xdp_md *ctx)
{
	u8 *data = (u8 *)(long)ctx->data, *end = (u8 *)(long)ctx->data_end, *l4 = data + 34;
	struct known *k = count();
	u32 kind = OPENS, proto = data + 34 <= end ? data[23] : 0;

	if (data + 14 <= end && *(u16 *)(data + 12) == swap16(ETH_IPV6)) {
		l4 = data + 54;
		proto = l4 <= end ? data[20] : 0;
	}
	if (!k || (proto != PROTO_TCP && proto != PROTO_UDP) || l4 + 14 > end)
		return XDP_PASS;
	if (proto == PROTO_TCP)
		kind = l4[13] & 2 ? OPENS : l4[13] & 5 ? ENDS : GOES_ON;
	if (kind != OF || ++k->matched % ONE_IN)
		return XDP_PASS;
	k->dropped++;
	return XDP_DROP;
}

/*
 * Adds SHIFT to the numbers with which each end of TCP counts its own bytes, as a firewall does that makes them harder to guess: to the
 * sequence numbers of one direction (SHIFT of this program), and it takes the other's back out of the acknowledgements.
 */
inline_always void shift(u8 *at, u32 by, u16 *check)
{
	u32 before = *(u32 *)at, after = swap32(swap32(before) + by);
	/* RFC 1624 */
	u32 sum = (u16)~*check + (u32)(u16)~before + (u16)~(before >> 16) + (u16)after + (u16)(after >> 16);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	*(u32 *)at = after;
	*check = ~sum;
}

SEC("xdp") int known_numbers(struct xdp_md *ctx)
{
	u8 *data = (u8 *)(long)ctx->data, *end = (u8 *)(long)ctx->data_end, *l4 = data + 34;
	u32 proto = data + 34 <= end ? data[23] : 0;

	count();
	if (data + 14 <= end && *(u16 *)(data + 12) == swap16(ETH_IPV6)) {
		l4 = data + 54;
		proto = l4 <= end ? data[20] : 0;
	}
	if (proto != PROTO_TCP || l4 + 20 > end)
		return XDP_PASS;
	shift(l4 + 4, SHIFT, (u16 *)(l4 + 16));
	if (l4[13] & 0x10)
		shift(l4 + 8, -SHIFT, (u16 *)(l4 + 16));
	return XDP_PASS;
}

/* Holds every frame up by DELAY_NS, on the CPU: as long as one frame at a time is under way, that is its extra delay. */
static long wait_until(u64 i, u64 *until)
{
	return bpf_ktime_get_ns() >= *until; /* 1 ends the loop */
}

SEC("xdp") int known_delay(struct xdp_md *ctx)
{
	struct known *k = count();
	u64 until = bpf_ktime_get_ns() + (OTHER_DELAY_NS && k && k->seen % 2 ? OTHER_DELAY_NS : DELAY_NS);

	bpf_loop(1000000, wait_until, &until, 0);
	return XDP_PASS;
}

struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
};

static long (*const bpf_clone_redirect)(struct __sk_buff *skb, u32 ifindex, u64 flags) = (void *)13;

#define COPY_MARK 0x6c6e7231

/* On the way out of the DUT, every ONE_IN-th frame leaves twice. The mark keeps the copy from being copied again. */
SEC("classifier") int known_duplication(struct __sk_buff *skb)
{
	struct known *k;

	if (skb->mark == COPY_MARK)
		return 0;
	k = count();
	if (k && k->seen % ONE_IN == 0) {
		skb->mark = COPY_MARK;
		if (!bpf_clone_redirect(skb, skb->ifindex, 0))
			k->duplicated++;
	}
	return 0;
}

/* For a DUT or port that needs NAPI (a redirected frame is lost without it) but no program of its own. */
SEC("xdp") int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
