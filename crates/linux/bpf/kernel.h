/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Types of the kernel that frames have.
 */
#pragma once
#include "linerate.h"

struct ns_common {
	u32 inum;
} KERNEL_TYPE;

struct net {
	struct ns_common ns;
} KERNEL_TYPE;

struct net_device {
	int ifindex;
	struct {
		struct net *net;
	} nd_net;
} KERNEL_TYPE;

struct sk_buff {
	struct net_device *dev;
	u8 *data;
	int skb_iif;
	u16 protocol;
} KERNEL_TYPE;

/* The namespaces that are observed, by inode; the first is 0 if all are. Keep in step with telemetry.rs. */
#define NAMESPACES 8
const volatile u32 OBSERVED[NAMESPACES];

inline_always int is_observed(struct net_device *dev)
{
	u32 inode = dev->nd_net.net->ns.inum;

	if (!OBSERVED[0])
		return 1;
	for (int i = 0; i < NAMESPACES; i++)
		if (inode && OBSERVED[i] == inode)
			return 1;
	return 0;
}
