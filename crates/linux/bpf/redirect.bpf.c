/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whether the driver of an interface transmits redirected frames: one is redirected, and the kernel says how many the driver took.
 */
#include "kernel.h"

const volatile u32 IFINDEX = 1;

struct taken {
	u64 frames;
	s64 error;       /* the driver's, negative; 0: the driver was not asked */
};

SHARED_ARRAY(taken, struct taken, 1);

SEC("xdp") int probe(struct xdp_md *ctx)
{
	return bpf_redirect(IFINDEX, 0);
}

/* Arguments: the devices that frames come from and go to, the frames that were taken, those that were not, and the error. */
SEC("tp_btf/xdp_devmap_xmit") int took(u64 *ctx)
{
	struct net_device *to = (struct net_device *)ctx[1];
	u32 zero = 0;
	struct taken *now = bpf_map_lookup_elem(&taken, &zero);

	if (!now || to->ifindex != IFINDEX || !is_observed(to))
		return 0;
	__sync_fetch_and_add(&now->frames, (u32)ctx[2]);
	if ((s32)ctx[4] < 0)
		now->error = (s32)ctx[4];
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
