/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long CPUs and tasks wait for locks, by the stack that wants the lock.
 */
#include "stack.h"

/* Different stacks, and waits at once, at most. */
#define STACKS 4096
#define WAITS 4096
/* CPUs that can be told apart. Keep in step with telemetry.rs. */
#define CPUS 1024

/* Flags of the tracepoint (include/trace/events/lock.h). */
#define LCB_F_SPIN 1
#define LCB_F_MUTEX 32

const volatile u64 OBSERVED[CPUS / 64];

struct wait {
	u64 lock;
	u64 waiter;   /* a CPU, or a task and IS_TASK */
};
#define IS_TASK (1ULL << 63)

struct begun {
	u64 since;
	u64 stack;    /* its number */
};

struct sum {
	u64 ns;
	u64 waits;
};

MAP(waits, HASH, sizeof(struct wait), sizeof(struct begun), WAITS);

/* Numbers of stacks, the innermost address first. */
MAP(stacks, HASH, sizeof(struct stack), 4, STACKS);

/* By number of the stack. */
MAP(sums, ARRAY, 4, sizeof(struct sum), STACKS);

/* Stacks that have a number, and waits without room. */
enum { NUMBERED, LOST, OTHERS };

MAP(others, ARRAY, 4, 8, OTHERS);

inline_always u64 count_other(u32 kind)
{
	u64 *count = bpf_map_lookup_elem(&others, &kind);

	return count ? __sync_fetch_and_add(count, 1) : STACKS;
}

/* The work of taking a stack is done before the wait: a lock is not held any longer for it. */
SEC("tp_btf/contention_begin") int contention_begin(u64 *ctx)
{
	u32 cpu = bpf_get_smp_processor_id(), flags = ctx[1], number, *known;
	struct wait wait = { .lock = ctx[0] };
	struct begun begun = {};
	struct stack *stack;

	if (!(OBSERVED[cpu / 64 & (CPUS / 64 - 1)] >> (cpu & 63) & 1))
		return 0;
	wait.waiter = (flags & (LCB_F_SPIN | LCB_F_MUTEX)) == LCB_F_SPIN ? cpu : IS_TASK | bpf_get_current_pid_tgid();
	/* A mutex is spun for, and then slept for: that is one wait. */
	if (bpf_map_lookup_elem(&waits, &wait))
		return 0;
	stack = this_stack(ctx);
	if (!stack) {
		count_other(LOST);
		return 0;
	}
	known = bpf_map_lookup_elem(&stacks, stack);
	if (known) {
		begun.stack = *known;
	} else {
		number = begun.stack = count_other(NUMBERED);
		/* Where another CPU was first to add the stack, it has two numbers, and one of them no stack: little is lost, once. */
		if (begun.stack >= STACKS || bpf_map_update_elem(&stacks, stack, &number, BPF_NOEXIST)) {
			count_other(LOST);
			return 0;
		}
	}
	begun.since = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&waits, &wait, &begun, BPF_NOEXIST))
		count_other(LOST);
	return 0;
}

SEC("tp_btf/contention_end") int contention_end(u64 *ctx)
{
	struct wait wait = { .lock = ctx[0], .waiter = bpf_get_smp_processor_id() };
	struct begun *begun = bpf_map_lookup_elem(&waits, &wait);
	struct sum *sum;
	u32 number;
	u64 ns;

	if (!begun) {
		wait.waiter = IS_TASK | bpf_get_current_pid_tgid();
		begun = bpf_map_lookup_elem(&waits, &wait);
	}
	if (!begun)
		return 0;
	ns = bpf_ktime_get_ns() - begun->since;
	number = begun->stack;
	sum = bpf_map_lookup_elem(&sums, &number);
	if (sum) {
		__sync_fetch_and_add(&sum->ns, ns);
		__sync_fetch_and_add(&sum->waits, 1);
	}
	bpf_map_delete_elem(&waits, &wait);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
