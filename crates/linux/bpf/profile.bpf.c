/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counts the kernel stacks that samples of a perf event find.
 */
#include "stack.h"

/* Different stacks at most. */
#define STACKS 16384

/* Samples by stack. */
struct {
	MAP_UINT(type, BPF_MAP_TYPE_HASH);
	MAP_UINT(key_size, sizeof(struct stack));
	MAP_UINT(value_size, 8);
	MAP_UINT(max_entries, STACKS);
} counts SEC(".maps");

/* Samples in user space, and samples whose stack found no room. */
enum { USER, LOST, OTHERS };

struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_UINT(key_size, 4);
	MAP_UINT(value_size, 8);
	MAP_UINT(max_entries, OTHERS);
} others SEC(".maps");

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
