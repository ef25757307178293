/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs that have a CPU, and for how long: the time between two switches of tasks on it.
 */
#include "linerate.h"

/* CPUs that can be told apart. Keep in step with telemetry.rs. */
#define CPUS 1024
/* Programs on CPUs at most. */
#define PROGRAMS 4096

/* Bytes of a name. */
#define NAME 16

#define PF_KTHREAD 0x00200000

const volatile u64 OBSERVED[CPUS / 64];

/* The process that counts, in its namespace of processes. */
const volatile u32 OWN_PID, OWN_NAMESPACE;

struct ns_common {
	u32 inum;
} KERNEL_TYPE;

struct pid_namespace {
	struct ns_common ns;
} KERNEL_TYPE;

/* A number of a process, in one of the namespaces that it is in. */
struct upid {
	s32 nr;
	struct pid_namespace *ns;
};

struct pid {
	u32 level;
	struct upid numbers[1];
} KERNEL_TYPE;

struct task_struct {
	u32 flags;
	s32 tgid;
	char comm[NAME];
	struct task_struct *group_leader;
	struct pid *thread_pid;
} KERNEL_TYPE;

/* Kinds of programs. Keep in step with switches.rs. */
enum kind { PROGRAM, OF_KERNEL, OWN };

/* A program on a CPU. */
struct program {
	u32 cpu;
	u32 pid;
};

struct time {
	u64 ns;
	u32 kind;
	u32 zero;
	char name[NAME];
};

MAP(times, HASH, sizeof(struct program), sizeof(struct time), PROGRAMS);

/* The program that has a CPU now, and since when. */
struct running {
	u64 since;
	u32 pid;
	u32 kind;
	char name[NAME];
};

MAP(running, ARRAY, 4, sizeof(struct running), CPUS);

/* No time before this moment counts. */
MAP(began, ARRAY, 4, 8, 1);

/* The kind of a program, by its first thread. */
inline_always u32 kind_of(struct task_struct *leader)
{
	struct pid *pid = leader->thread_pid;
	u32 level = pid->level & 31, namespace = 0;
	struct upid own = {};

	if (leader->flags & PF_KTHREAD)
		return OF_KERNEL;
	bpf_probe_read_kernel(&own, sizeof(own), (void *)pid->numbers + level * sizeof(own));
	if (own.nr != OWN_PID)
		return PROGRAM;
	bpf_probe_read_kernel(&namespace, sizeof(namespace), &own.ns->ns.inum);
	return namespace == OWN_NAMESPACE ? OWN : PROGRAM;
}

/* Counts the time of the program that had the CPU until now. Its name is that which it has in the end: it may have begun another. */
inline_always void count(struct task_struct *was, u64 since, u32 cpu, u64 now)
{
	struct task_struct *leader = was->group_leader;
	struct program program = { .cpu = cpu, .pid = was->tgid };
	struct time first = {}, *known;
	u32 zero = 0;
	u64 *from;

	from = bpf_map_lookup_elem(&began, &zero);
	if (!since || !from)
		return;
	if (since < *from)
		since = *from;
	if (now <= since)
		return;
	known = bpf_map_lookup_elem(&times, &program);
	if (known) {
		known->ns += now - since;
		bpf_probe_read_kernel(known->name, NAME, leader->comm);
		return;
	}
	first.ns = now - since;
	first.kind = kind_of(leader);
	bpf_probe_read_kernel(first.name, NAME, leader->comm);
	bpf_map_update_elem(&times, &program, &first, BPF_NOEXIST);
}

SEC("tp_btf/sched_switch") int switched(u64 *ctx)
{
	struct task_struct *next = (struct task_struct *)ctx[2], *leader = next->group_leader;
	u32 cpu = bpf_get_smp_processor_id();
	struct running *is;
	u64 now;

	if (!(OBSERVED[cpu / 64 & (CPUS / 64 - 1)] >> (cpu & 63) & 1))
		return 0;
	is = bpf_map_lookup_elem(&running, &cpu);
	if (!is)
		return 0;
	now = bpf_ktime_get_ns();
	count((struct task_struct *)ctx[1], is->since, cpu, now);
	is->pid = next->tgid;
	is->kind = kind_of(leader);
	bpf_probe_read_kernel(is->name, NAME, leader->comm);
	is->since = now;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
