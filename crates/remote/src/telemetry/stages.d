#!/usr/sbin/dtrace -Zs
/*
 * How long frames are in the stack of FreeBSD, from ether_input to ether_output. Run it for ten seconds under load:
 *
 *   kldload dtraceall
 *   dtrace -Zs stages.d -o stages.txt
 *   linerate profile --read stages.txt
 *
 * A driver hands several frames to one call of ether_input: the later ones wait for the first, and that is part of their time. Frames
 * that netisr queues for another thread are not counted. Each probe takes time from the frames: do not measure rates meanwhile.
 */
#pragma D option quiet

fbt::ether_input:entry
{
	self->entered = timestamp;
}

fbt::ether_demux:entry
/self->entered/
{
	self->demuxed = timestamp;
	@["ether_input to ether_demux"] = quantize(self->demuxed - self->entered);
}

fbt::ether_output:entry
/self->demuxed/
{
	self->sent = timestamp;
	@["ether_demux to ether_output"] = quantize(self->sent - self->demuxed);
	@["ether_input to ether_output"] = quantize(self->sent - self->entered);
	self->demuxed = 0;
}

fbt::ether_output:return
/self->sent/
{
	@["ether_output to its return"] = quantize(timestamp - self->sent);
	self->sent = 0;
}

fbt::ether_input:return
{
	self->entered = 0;
	self->demuxed = 0;
}

tick-10s
{
	exit(0);
}
