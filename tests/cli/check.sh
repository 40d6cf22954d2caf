# Sourced by the command's tests: runs things, prints "ok NAME" or "not ok NAME", keeps the count of failures.
# Wants TENURE, the command under test, and leaves WORK, an empty folder that is removed at the end.

WORK=$(mktemp -d "${TEST_TMPDIR:-/tmp}/cli-XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
failures=0
unset LD_PRELOAD TENURE_RUN TENURE_PLAN TENURE_LIB

ok() { echo "ok $1"; }
not_ok() {
    echo "not ok $1: $2"
    failures=$((failures + 1))
}

# same NAME GOT WANTED
same() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', wanted '$3'"; fi; }

# holds NAME TEXT PATTERN (a shell pattern)
holds() {
    case $2 in
    $3) ok "$1" ;;
    *) not_ok "$1" "'$2' does not match '$3'" ;;
    esac
}

# run COMMAND...: leaves rc, out and err
run() {
    "$@" >"$WORK/.out" 2>"$WORK/.err" </dev/null
    rc=$?
    out=$(cat "$WORK/.out")
    err=$(cat "$WORK/.err")
}

# refused NAME CODE PATTERN: the last run gave CODE, nothing on standard output and one sentence on standard error
refused() {
    if [ "$rc" != "$2" ]; then
        not_ok "$1" "exit code $rc, wanted $2 ($err)"
    elif [ -n "$out" ]; then
        not_ok "$1" "it printed '$out'"
    elif [ "$(wc -l <"$WORK/.err")" != 1 ]; then
        not_ok "$1" "not one line on standard error: '$err'"
    else
        holds "$1" "$err" "$3"
    fi
}

finish() { [ "$failures" = 0 ] || exit 1; }
