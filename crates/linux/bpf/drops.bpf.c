/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counts the frames that the kernel drops, by its reason and the place in its code.
 */
#include "kernel.h"

/* Different drops at most. */
#define DROPS 1024
/* A kernel before 5.17 gives no reason. */
#define NO_REASON 0xffffffff

struct drop {
	u64 location;
	u32 reason;
	u32 zero;
};

MAP(drops, PERCPU_HASH, sizeof(struct drop), 8, DROPS);

/* Frames without room above. */
MAP(lost, ARRAY, 4, 8, 1);

inline_always int count(struct sk_buff *skb, u64 location, u32 reason)
{
	struct drop drop = { .location = location, .reason = reason };
	u64 one = 1, *frames;
	u32 zero = 0;

	if (!is_observed(skb->dev))
		return 0;
	frames = bpf_map_lookup_elem(&drops, &drop);
	if (frames)
		(*frames)++;
	else if (bpf_map_update_elem(&drops, &drop, &one, BPF_NOEXIST)) {
		frames = bpf_map_lookup_elem(&lost, &zero);
		if (frames)
			__sync_fetch_and_add(frames, 1);
	}
	return 0;
}

SEC("tp_btf/kfree_skb") int drop_with_reason(u64 *ctx)
{
	return count((struct sk_buff *)ctx[0], ctx[1], ctx[2]);
}

SEC("tp_btf/kfree_skb") int drop_without_reason(u64 *ctx)
{
	return count((struct sk_buff *)ctx[0], ctx[1], NO_REASON);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
