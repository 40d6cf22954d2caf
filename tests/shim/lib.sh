# Sourced by this folder's tests with the files of the test as arguments: libraries go to $LIB (the mini driver to $MINI),
# programs to $BIN. Prints "ok NAME" or "not ok NAME: WHY"; `finish` exits 1 if anything failed. $WORK is removed at the end.

WORK=$(mktemp -d "${TEST_TMPDIR:-/tmp}/shim-XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
PATH=$PATH:/usr/sbin:/sbin # mkfs, debootstrap, chroot
LIB=$WORK/lib MINI=$WORK/mini BIN=$WORK/bin
mkdir "$LIB" "$MINI" "$BIN"
failures=0
unset LD_PRELOAD LD_LIBRARY_PATH TENURE_RUN TENURE_PLAN FAKEGPU_STATS
for file in "$@"; do
    case $file in
    */mini/*.so.*) cp -L "$file" "$MINI/" ;;
    *.so | *.so.*) cp -L "$file" "$LIB/" ;;
    *.sh) ;;
    *) ln -s "$(realpath "$file")" "$BIN/$(basename "$file")" ;;
    esac
done
chmod -R u+w "$LIB" "$MINI"
export TENURE_LIB="$LIB/libtenure.so"
PRELOAD=$LIB/libtenure.so
DRIVER=$LIB # the folder that LD_LIBRARY_PATH names; a test may set it to $MINI:$LIB
cd "$WORK" || exit 1

ok() { echo "ok $1"; }
not_ok() {
    echo "not ok $1: $2"
    failures=$((failures + 1))
}
skip() { echo "skip $1: $2"; }

# same NAME GOT WANTED
same() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', wanted '$3'"; fi; }

# empty NAME TEXT
empty() { if [ -z "$2" ]; then ok "$1"; else not_ok "$1" "$2"; fi; }

# holds NAME TEXT PATTERN (a shell pattern)
holds() {
    case $2 in
    $3) ok "$1" ;;
    *) not_ok "$1" "'$2' does not match '$3'" ;;
    esac
}

# at_least NAME GOT WANTED (integers)
at_least() { if [ "${2:-0}" -ge "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', wanted $3 or more"; fi; }

# Each runs a program with its output in PREFIX.out and PREFIX.err and leaves its exit code in rc.
native() { # PREFIX COMMAND...
    prefix=$1
    shift
    LD_LIBRARY_PATH=$DRIVER "$@" >"$prefix.out" 2>"$prefix.err" </dev/null
    rc=$?
    echo $rc >"$prefix.rc"
}
preloaded() { # PREFIX RUN COMMAND...; RUN may be empty
    prefix=$1 run=$2
    shift 2
    [ -z "$run" ] || mkdir -p "$run" 2>/dev/null
    LD_LIBRARY_PATH=$DRIVER LD_PRELOAD=$PRELOAD TENURE_RUN=$run "$@" >"$prefix.out" 2>"$prefix.err" </dev/null
    rc=$?
    echo $rc >"$prefix.rc"
}
recorded() { # PREFIX RUN COMMAND...: by tenure record, whose own lines go to PREFIX.tenure
    prefix=$1 run=$2
    shift 2
    LD_LIBRARY_PATH=$DRIVER "$BIN/tenure" record -o "$run" -- "$@" >"$prefix.out" 2>"$prefix.err" </dev/null
    rc=$?
    echo $rc >"$prefix.rc"
    grep '^tenure record: ' "$prefix.err" >"$prefix.tenure"
    grep -v '^tenure record: ' "$prefix.err" >"$prefix.own"
    mv "$prefix.own" "$prefix.err"
}

# same_output NAME A B: standard output, standard error and exit code of two runs by their prefixes
same_output() {
    for part in out err rc; do
        if ! cmp -s "$2.$part" "$3.$part"; then
            not_ok "$1" "$part differs: $(diff "$2.$part" "$3.$part" | head -n 6)"
            return
        fi
    done
    ok "$1"
}

# field TEXT KEY: the value of KEY=value in a line of journal_info
field() { echo "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1; }
totals() { "$BIN/journal_info" "$1" | sed -n 's/^total //p'; }
total() { field "$(totals "$1")" "$2"; }

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
    tries=$(($1 * 50))
    shift
    while ! "$@" 2>/dev/null; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.02
    done
}
has_journal() { ls "$1"/*.tnj >/dev/null 2>&1; }

finish() { [ "$failures" = 0 ] || exit 1; }
