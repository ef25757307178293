# What linerate runs on a host for one command, in the language that dash, FreeBSD's sh and OpenBSD's ksh share.
#
# Standard input brings this text, a line of settings, the command, and then orders: `.` says that linerate lives, `clock` asks for
# the time, `go` starts the command, `int` interrupts one process of it, `term` and `kill` end it. Marked lines on standard output answer; all else is the command's own.
# The command belongs to the process group of this session. When linerate is silent for too long, or the connection is closed,
# the whole group is ended, this shell with it.
IFS=' ' read -r mark mode pause lines || exit 1
command=
while [ "$lines" -gt 0 ]; do
	IFS= read -r line || exit 1
	command=$command$line$n
	lines=$((lines - 1))
done
PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin
export PATH

tell() { echo "$mark $1"; }
over() {
	tell "over $1"
	tell "over $1" >&2
}
now() { date "+$mark $1 %s.%N" || tell "$1 none"; }

if [ "$mode" = feed ]; then
	# The rest of standard input is the command's.
	tell ready
	/bin/sh -c "$command"
	over $?
	exit
fi

# The watch: without a beat for two pauses, it tells the shell and ends the group. It says itself that it is ready for beats.
watch() {
	trap beat=1 USR1
	trap '' TERM
	tell ready
	exec >/dev/null 2>&1 3<&-
	beat=1
	while [ "$beat" = 1 ]; do
		beat=0
		sleep "$pause" || sleep 1
	done
	kill -USR2 "$shell"
	kill -TERM 0
	sleep 1
	kill -KILL 0
}

# Orders while the command runs. Their end is the end of the command, or of the connection: what is left is ended.
obey() {
	trap '' TERM
	exec >/dev/null 2>&1
	told=
	while IFS= read -r line <&3; do
		case $line in
		term)
			told=1
			kill -TERM 0
			;;
		kill) kill -KILL 0 ;;
		'int '*) kill -INT "${line#int }" ;;
		*) kill -USR1 "$watcher" ;;
		esac
	done
	[ "$told" ] || kill -TERM 0
	sleep 1
	kill -KILL 0
}

exec 3<&0 </dev/null
shell=$$
silent=
trap '' USR1
trap : TERM
trap silent=silent USR2
watch &
watcher=$!
trap - USR1
go=
while [ -z "$go" ] && IFS= read -r line <&3; do
	case $line in
	go) go=1 ;;
	clock) now clock ;;
	.) kill -USR1 "$watcher" ;;
	*) break ;;
	esac
done
[ "$go" ] || kill -KILL 0
now began
obey &
# This shell's own remarks, such as "Terminated", are not the command's.
exec 4>&2 2>/dev/null
# Its process is the one that this names, as long as the command is a program behind exec.
/bin/sh -c 'echo "$1 process $$"; exec /bin/sh -c "$2"' linerate "$mark" "$command" 3<&- 2>&4 4>&-
over "$? $silent" 2>&4
