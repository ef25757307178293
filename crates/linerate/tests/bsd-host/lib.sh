# What the programs of this folder share. They are POSIX sh; the state folder is $BSD_HOST.

here=$(cd "$(dirname "$0")" && pwd)
state=${BSD_HOST:-$here/../state}
name=$(basename "$0")

if ! [ -r "$state/system" ]; then
	echo "$name: BSD_HOST names no state folder: $state" >&2
	exit 70
fi

# A host that boots answers nothing. It is back when its time has come.
if [ -r "$state/down-until" ]; then
	until=$(cat "$state/down-until")
	if [ "$until" = never ] || [ "$(date +%s)" -lt "$until" ]; then
		exit 255
	fi
fi

# One that is to hang does so once, for as long as it is let.
if [ "$(cat "$state/hang" 2>/dev/null)" = "$name" ]; then
	rm "$state/hang"
	exec sleep 1000
fi

# One that is to fail does so.
[ "$(cat "$state/fails" 2>/dev/null)" != "$name" ] || exit 1

system=$(cat "$state/system")
freebsd() { [ "$system" = freebsd ]; }

fail() {
	echo "$name: $*" >&2
	exit 1
}

# Changes are written down, so that tests see what was done and undone.
log() {
	printf '%s\n' "$*" >>"$state/log"
}

# One key of a file "key value"; get FILE KEY
get() {
	sed -n "s|^$2 ||p" "$1"
}

# put FILE KEY VALUE
put() {
	grep -v "^$2 " "$1" >"$1.new"
	printf '%s %s\n' "$2" "$3" >>"$1.new"
	mv "$1.new" "$1"
}
