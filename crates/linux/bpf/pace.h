/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When connections and SYNs of a flood leave: part of connections.bpf.c. */
#pragma once

#define CREDIT 1000000000000ULL
#define CATCH_UP_NS 100000000ULL

/*
 * Each connection at a rate, and each SYN of a flood, is late by a random part of the usual distance, and all together keep the rate. A
 * rule that lets a number of SYNs a second pass has a clock of its own: evenly spaced ones would meet the same part of it each time.
 */
inline_always u64 random_price(u64 *late)
{
	u64 before = *late;

	*late = (u64)bpf_get_prandom_u32() * (CREDIT >> 32);
	return CREDIT + *late - before;
}

inline_always u64 earned(u64 credit, u64 elapsed, u64 rate_mfps)
{
	if (unlikely(elapsed > CATCH_UP_NS))
		elapsed = CATCH_UP_NS;
	credit += elapsed * rate_mfps;
	/* no price is higher than twice the usual one */
	if (unlikely(credit > CATCH_UP_NS * rate_mfps + 2 * CREDIT))
		credit = CATCH_UP_NS * rate_mfps + 2 * CREDIT;
	return credit;
}

/* Looks at the clock: begins the load, ends it, or earns credit. Returns whether the load goes on. */
inline_always int goes_on(struct opener *s, u64 now)
{
	u64 elapsed;

	if (unlikely(!s->first_ns)) {
		if (now < s->not_before)
			return 0;
		s->first_ns = now;
		s->last_ns = now;
		s->deadline_ns = now + s->duration_ns;
		s->credit = CREDIT;
	}
	if (unlikely(now >= s->deadline_ns)) {
		s->finished = 1;
		return 0;
	}
	elapsed = now - s->last_ns;
	s->last_ns = now;
	if (unlikely(elapsed > s->stall_ns))
		s->stall_ns = elapsed;
	if (s->rate_mfps)
		s->credit = earned(s->credit, elapsed, s->rate_mfps);
	if (s->flood_mfps)
		s->flood_credit = earned(s->flood_credit, elapsed, s->flood_mfps);
	return 1;
}

/* A flood that is more than the CPU can send must not keep the load from its end: the clock is looked at after so many of its SYNs. */
#define LONGEST_FLOOD 15
/* Bits of a credit, and of a random number, that are left out where both are multiplied. */
#define COARSE_CREDIT 20
#define COARSE_RANDOM 12

/*
 * Whether a SYN of the flood is next. A flood does not wait for the DUT, so its SYNs go before connections that do, and after
 * LONGEST_FLOOD of them such a connection has its turn. Of connections and SYNs that both have a rate, several wait after a stall: each of
 * them is as likely to be next as any other.
 */
inline_always int floods(struct opener *s)
{
	u64 syns, all;

	if (s->finished || s->flood_credit < s->flood_price) {
		s->flood_run = 0;
		return 0;
	}
	if (++s->flood_run > LONGEST_FLOOD) {
		s->flood_run = 0;
		if (!s->rate_mfps || !goes_on(s, bpf_ktime_get_ns()))
			return 0;
	}
	if (!s->rate_mfps || s->credit < s->price)
		return 1;
	syns = s->flood_credit >> COARSE_CREDIT;
	all = syns + (s->credit >> COARSE_CREDIT);
	return (bpf_get_prandom_u32() >> COARSE_RANDOM) * all < syns << (32 - COARSE_RANDOM);
}
