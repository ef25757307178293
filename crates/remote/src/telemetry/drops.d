/*
 * Frames that the IP of FreeBSD drops, by its counter and the functions that count (dtrace_mib(4)), until it is interrupted.
 */
#pragma D option quiet

mib:ip:count:ips_bad*,
mib:ip:count:ips_too*,
mib:ip:count:ips_cant*,
mib:ip:count:ips_no*,
mib:ip:count:ips_*drop*,
mib:ip6:count:ip6s_bad*,
mib:ip6:count:ip6s_too*,
mib:ip6:count:ip6s_cant*,
mib:ip6:count:ip6s_no*,
mib:ip6:count:ip6s_*drop*
{
	@frames = sum(arg0);
	@[probename, stack(4)] = sum(arg0);
}

END
{
	printf("found:");
	printa("%@d", @frames);
	printf("\n");
}
