/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counts the kernel stacks that samples of a perf event find.
 */
#include "stack.h"

/* Different stacks at most. */
#define STACKS 16384

/* Samples by stack. */
MAP(counts, HASH, sizeof(struct stack), 8, STACKS);

/* Samples in user space, and samples whose stack found no room. */
enum { USER, LOST, OTHERS };

MAP(others, ARRAY, 4, 8, OTHERS);

static int count_other(u32 kind)
{
	u64 *count = bpf_map_lookup_elem(&others, &kind);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

SEC("perf_event") int sample(void *ctx)
{
	u64 one = 1, *count;
	struct stack *stack = this_stack(ctx);

	if (!stack)
		return count_other(USER);
	/* Another CPU may be first to add the stack. */
	count = bpf_map_lookup_elem(&counts, stack);
	if (!count && !bpf_map_update_elem(&counts, stack, &one, BPF_NOEXIST))
		return 0;
	if (!count)
		count = bpf_map_lookup_elem(&counts, stack);
	if (!count)
		return count_other(LOST);
	__sync_fetch_and_add(count, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
