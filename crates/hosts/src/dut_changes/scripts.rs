//! Parts of scripts that several kinds of changes share: they read and write files, and the kernel's.

/// A link stays a link: its target is written, and is `$1` from here on. The root of a router made by nanobsd is mounted
/// read-only: it is mounted read-write while a file there is written (mount(8) of FreeBSD).
macro_rules! writable {
    () => {
        r#"links=0
while [ -h "$1" ]; do
	links=$((links + 1))
	[ "$links" -le 40 ] || { echo "$1 is a link that leads nowhere" >&2; exit 1; }
	to=$(readlink "$1") || exit 1
	case $to in
	/*) set -- "$to" ;;
	*) set -- "${1%/*}/$to" ;;
	esac
done
[ -w "${1%/*}/" ] || { mount -uw / && trap 'mount -ur /' EXIT; } || exit 1
"#
    };
}

pub(super) use writable;

/// Prints whether a file exists, then its content. Without its folder, it cannot be written.
pub(super) const FILE_READ: &str = r#"if [ -e "$1" ]; then echo present; cat "$1"; elif [ -d "${1%/*}/" ]; then echo absent
else echo "there is no folder ${1%/*}" >&2; exit 1; fi"#;
/// Writes its input into a second file, which has the owner and the mode of the first, if that is there.
macro_rules! beside {
    () => {
        r#"
if [ -e "$1" ]; then cp -p "$1" "$1.linerate"; fi
cat >"$1.linerate"
"#
    };
}
/// Writes its input, by way of a second file, so that the file is never incomplete. An existing file keeps its owner and mode, another
/// gets the mode that this umask leaves.
macro_rules! file_write {
    ($umask:literal) => {
        concat!(
            writable!(),
            "set -e\numask ",
            $umask,
            beside!(),
            r#"mv -f "$1.linerate" "$1""#
        )
    };
}

pub(super) use {beside, file_write};

macro_rules! files_read {
    () => {
        r#"for f in $1; do [ -e "$f" ] && echo "$f $(cat "$f")"; done
"#
    };
}
/// Files of `$was`, in its order: some change others, so all are compared at the end.
macro_rules! lines_back {
    () => {
        r#"was=$(cat)
printf '%s\n' "$was" | while read -r f value; do [ ! -e "$f" ] || printf '%s\n' "$value" >"$f"; done
printf '%s\n' "$was" | {
	failed=0
	while read -r f value; do
		[ ! -e "$f" ] || [ "$(cat "$f")" = "$value" ] || { echo "$f is $(cat "$f"), and was $value" >&2; failed=1; }
	done
	exit $failed
}
failed=$?
"#
    };
}
pub(super) use {files_read, lines_back};

/// Prints the kernel's files of a pattern, each with its content.
pub(super) const FILES_READ: &str = concat!(files_read!(), "exit 0");
/// Restores files from lines of a name and its content.
pub(super) const LINES_BACK: &str = concat!(lines_back!(), "exit $failed");

/// Prints all rules of nftables, if their output can be loaded again: that of iptables' extensions cannot.
macro_rules! nft_read {
    () => {
        r#"was=$(nft list ruleset) || exit 1
printf 'flush ruleset\n%s\n' "$was" | nft -c -f - >/dev/null || {
	echo "nft cannot read its own listing, so its rules could not be put back" >&2; exit 1
}
printf '%s\n' "$was""#
    };
}
macro_rules! nft_back {
    () => {
        r#"{ echo 'flush ruleset'; cat; } | nft -f -"#
    };
}
pub(super) use {nft_back, nft_read};

/// Restores these rules at once.
pub(super) const NFT_BACK: &str = nft_back!();
