# Sourced by this folder's tests with the test's files as arguments: libraries go to $LIB, programs to $BIN, which has
# libunwind beside them. Prints "ok NAME" or "not ok NAME: WHY"; `finish` exits 1 if anything failed.

WORK=$(mktemp -d "${TEST_TMPDIR:-/tmp}/wrap-XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
LIB=$WORK/lib BIN=$WORK/bin
mkdir "$LIB" "$BIN"
failures=0
unset LD_PRELOAD LD_LIBRARY_PATH TENURE_RUN TENURE_PLAN TENURE_LIBUNWIND FAKEGPU_STATS
for file in "$@"; do
    case $file in
    */libunwind.so.* | */liblzma.so.*) cp -L "$file" "$LIB/" && cp -L "$file" "$BIN/" ;;
    *.so | *.so.*) cp -L "$file" "$LIB/" ;;
    *.jq) REPORT_JQ=$(realpath "$file") ;;
    *.sh) ;;
    *) cp -L "$file" "$BIN/" ;;
    esac
done
chmod -R u+w "$LIB" "$BIN"
export TENURE_LIB="$LIB/libtenure.so"
cd "$WORK" || exit 1

ok() { echo "ok $1"; }
not_ok() {
    echo "not ok $1: $2"
    failures=$((failures + 1))
}
skip() { echo "skip $1: $2"; }
same() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', wanted '$3'"; fi; } # NAME GOT WANTED
same_files() { # NAME GOT WANTED
    if [ ! -s "$3" ]; then not_ok "$1" "nothing to compare with in $3"
    elif cmp -s "$2" "$3"; then ok "$1"
    else not_ok "$1" "$(diff "$2" "$3" | head -20)"; fi
}
finish() { exit $((failures != 0)); }

# Each leaves NAME.out, NAME.rc and, where it records, NAME.json, with the report of the run.
bare() { # NAME COMMAND...
    name=$1
    shift
    LD_LIBRARY_PATH=$LIB "$@" >"$name.out" 2>&1 </dev/null
    echo $? >"$name.rc"
}
report() {
    "$BIN/tenure" report --json "$1.run" >"$1.json" || not_ok "$1 is reported" "exit code $?"
}
preloaded() { # NAME COMMAND...
    name=$1
    shift
    LD_LIBRARY_PATH=$LIB "$BIN/tenure" record -o "$name.run" -- "$@" >"$name.out" 2>&1 </dev/null
    echo $? >"$name.rc"
    report "$name"
}
linked() { # NAME COMMAND...
    name=$1
    shift
    mkdir "$name.run"
    LD_LIBRARY_PATH=$LIB TENURE_RUN=$name.run "$@" >"$name.out" 2>&1 </dev/null
    echo $? >"$name.rc"
    report "$name"
}
# part NAME WHAT PROGRAM: the file with that part of NAME's report
part() {
    jq -r --arg what "$2" --arg exe "$3" -f "$REPORT_JQ" "$1.json" >"$1.$2" || not_ok "$1: $2" "jq failed"
    echo "$1.$2"
}
unchanged() { # NAME BARE: output and exit code are those of the bare run
    same_files "$1 changes no output" "$1.out" "$2.out"
    same "$1 ends as the bare run" "$(cat "$1.rc")" "$(cat "$2.rc")"
}
