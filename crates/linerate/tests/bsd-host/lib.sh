# Functions of the programs of this folder. They are POSIX sh; the state folder is $BSD_HOST. A test starts thousands of them: what the
# shell can do by itself starts no other program.

name=${0##*/}
state=${BSD_HOST:-${0%/*}/../state}

if ! [ -r "$state/system" ]; then
	echo "$name: BSD_HOST names no state folder: $state" >&2
	exit 70
fi

# The first line of a file, in `line`; without the file, or with an empty one, the other text.
first() { # first FILE [TEXT]
	line=${2:-}
	[ ! -s "$1" ] || read -r line <"$1" || :
}
# The text of a file, or of the standard input, in `text`: its last line, too, ends with a newline.
newline='
'
all_of() {
	text=
	[ ! -s "$1" ] || while IFS= read -r line || [ -n "$line" ]; do text=$text$line$newline; done <"$1"
}

# A host that boots answers nothing. It is back when its time has come.
if [ -s "$state/down-until" ]; then
	first "$state/down-until"
	if [ "$line" = never ] || [ "$(date +%s)" -lt "$line" ]; then
		exit 255
	fi
fi

# One that is to hang does so once, for as long as it is let.
if [ -s "$state/hang" ]; then
	first "$state/hang"
	[ "$line" != "$name" ] || { rm "$state/hang"; exec sleep 1000; }
fi

# One that is to fail does so.
if [ -s "$state/fails" ]; then
	first "$state/fails"
	[ "$line" != "$name" ] || exit 1
fi

read -r system <"$state/system"
freebsd() { [ "$system" = freebsd ]; }

fail() {
	echo "$name: $*" >&2
	exit 1
}

# Changes are written down, so that tests see what was done and undone.
log() {
	printf '%s\n' "$*" >>"$state/log"
}

# One key of a file "key value", in `value`; get FILE KEY. Of several, the last.
get() {
	value=
	while read -r key rest; do
		[ "$key" != "$2" ] || value=$rest
	done <"$1"
}

# Whether a file has a line that is, or begins with, a text. A text that begins has a blank at its end.
has_line() { # has_line FILE LINE
	[ -s "$1" ] && while IFS= read -r line; do
		[ "$line" != "$2" ] || return 0
	done <"$1"
	return 1
}
begins() { # begins FILE TEXT
	[ -s "$1" ] && while IFS= read -r line; do
		case $line in "$2"*) return 0 ;; esac
	done <"$1"
	return 1
}

# Takes the lines that begin with a text out of a file, and adds one; readers see all of it or nothing.
replace() { # replace FILE TEXT [LINE]
	{
		[ ! -s "$1" ] || while IFS= read -r line || [ -n "$line" ]; do
			case $line in "$2"*) ;; *) printf '%s\n' "$line" ;; esac
		done <"$1"
		[ $# -lt 3 ] || printf '%s\n' "$3"
	} >"$1.new"
	mv "$1.new" "$1"
}

# put FILE KEY VALUE
put() {
	replace "$1" "$2 " "$2 $3"
}

# The interface whose network begins an address; nothing if there is none. Networks of tests end with a whole byte or group.
near() { # near ADDRESS: in `interface`
	interface=
	for file in "$state"/if/*; do
		while read -r key address; do
			[ "$key" = inet ] || continue
			case $address in "${1%.*}."*) interface=${file##*/} && return ;; esac
		done <"$file"
	done
	return 1
}
