/*
 * Nanoseconds that CPUs and threads of FreeBSD wait for locks, by lock and stack (dtrace_lockstat(4)), and how often by stack, until it
 * is interrupted. A lock of any kind begins with a struct lock_object.
 */
#pragma D option quiet
#pragma D option aggsize=16m
#pragma D option stackframes=32

lockstat:::adaptive-spin,
lockstat:::adaptive-block,
lockstat:::spin-spin,
lockstat:::thread-spin,
lockstat:::rw-spin,
lockstat:::rw-block,
lockstat:::sx-spin,
lockstat:::sx-block
{
	@waits = count();
	@[strjoin("lock ", stringof(((struct lock_object *)arg0)->lo_name)), stack()] = sum(arg1);
	@times["times", stack()] = count();
}

END
{
	printf("found:");
	printa("%@d", @waits);
	printf("\n");
}
