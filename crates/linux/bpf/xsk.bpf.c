/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs around AF_XDP sockets. A receiver's socket gets frames only if an XDP program redirects them to it, and
 * several drivers do not run a zero-copy queue, not even its transmit side, before some XDP program is attached.
 */
#include "linerate.h"

/* The socket of each receive queue. */
MAP(sockets, XSKMAP, 4, 4, 1); /* queues */

/* Every frame goes to the socket of its queue: telling test frames from others is that side's work. */
SEC("xdp") int to_socket(struct xdp_md *ctx)
{
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_DROP);
}

/* Changes nothing. */
SEC("xdp") int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* The same for an interface whose frames come in several pieces. */
SEC("xdp.frags") int pass_frags(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
