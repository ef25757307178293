/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stacks of the kernel, whole: a BPF_MAP_TYPE_STACK_TRACE would drop each stack whose hash equals that of another one, of some
 * thousand different stacks several percent.
 */
#pragma once
#include "linerate.h"

/* Addresses of a stack at most: a key of a map has at most 512 bytes. */
#define DEEPEST 64

/* The innermost address first. */
struct stack {
	u64 addresses[DEEPEST];
};

MAP(scratch, PERCPU_ARRAY, 4, sizeof(struct stack), 1);

/* The stack of this CPU; none in user space. It is good until the next call. */
inline_always struct stack *this_stack(void *ctx)
{
	u32 zero = 0;
	struct stack *stack = bpf_map_lookup_elem(&scratch, &zero);

	if (!stack)
		return 0;
	for (int i = 0; i < DEEPEST; i++)
		stack->addresses[i] = 0;
	return bpf_get_stack(ctx, stack, sizeof(*stack), 0) > 0 ? stack : 0;
}
