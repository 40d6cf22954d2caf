#!/bin/sh
# The toolkit's own cudart, shared and static, against the fake driver.
#
# How far it gets: it opens libcuda.so.1, asks dlsym for cuGetProcAddress_v2 and
# the resolver for 440 name, version and flag triples (346 names, first an empty
# one, then cuInit and cuGetProcAddress itself); it asks for a first private
# table and does without; it reads the driver's version, calls cuInit, and asks
# for a second private table. That one it cannot do without: the fake driver
# imitates no undocumented table and says "not found", and from there every call
# of the runtime answers 500 and leaves its outputs alone. The two versions ask
# the same questions in the same order.
#
# The golden file holds questions and answers of cudart 13.0; with another
# toolkit the comparison is left out, by a line that says so, and the rest holds.
#
# usage: test_real_cudart.sh LIBCUDA PROBE_SHARED PROBE_STATIC TRACE REAL_CUDART GOLDEN [--update]
set -u
libcuda=$1 shared=$2 static=$3 trace=$4 cudart=$5 golden=$6 update=${7-}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

report() {
    if [ "$1" -eq 0 ]; then echo "ok $2"; else echo "not ok $2"; failed=1; fi
}

# Absolute paths, and the two libraries under the names they are opened by.
real() { readlink -f "$1"; }
mkdir "$tmp/lib"
ln -s "$(real "$libcuda")" "$tmp/lib/libcuda.so.1"
ln -s "$(real "$cudart")" "$tmp/lib/libcudart.so.13"
trace=$(real "$trace")

run() { # name, program
    RESOLVER_TRACE="$tmp/$1.trace" LD_LIBRARY_PATH="$tmp/lib" LD_PRELOAD="$trace" "$2" > "$tmp/$1.out" 2> "$tmp/$1.err"
    report $? "$1_runs_to_its_end"
    [ ! -s "$tmp/$1.err" ]
    report $? "$1_prints_no_complaint"
}
run shared "$shared"
run static "$static"

cmp "$tmp/shared.trace" "$tmp/static.trace" && cmp "$tmp/shared.out" "$tmp/static.out"
report $? shared_and_static_ask_and_answer_alike

grep -v '^table' "$tmp/shared.trace" > "$tmp/queries"
[ "$(sed -n 1p "$tmp/queries" | cut -d' ' -f1)" = "(empty)" ]
report $? the_first_name_is_empty
[ "$(sed -n '2,4p' "$tmp/queries" | cut -d' ' -f1,2 | tr '\n' ',')" = "cuInit 2000,cuGetProcAddress 11030,cuGetProcAddress 12000," ]
report $? the_resolver_is_asked_for_itself_in_two_versions
[ "$(wc -l < "$tmp/queries")" -ge 400 ]
report $? hundreds_of_names_follow
[ "$(awk '$3 == 2' "$tmp/queries" | cut -d' ' -f1 | sort -u | wc -l)" -ge 60 ]
report $? some_by_the_per_thread_flag
awk '{ok = $5 == 0 && ($6 == "found") == ($7 == 0)} !ok {print "  " $0; bad = 1} END {exit bad}' "$tmp/queries"
report $? every_answer_is_a_success_with_a_pointer_or_a_status
[ "$(grep -c '^table' "$tmp/shared.trace")" -eq 2 ] && [ "$(tail -n 1 "$tmp/shared.trace" | cut -d' ' -f1)" = table ]
report $? the_second_private_table_is_the_end

cat > "$tmp/expected" << 'OUT'
device count -1: 500
malloc kept: 500
last error cudaErrorSymbolNotFound
OUT
sed -n '3,$p' "$tmp/shared.out" | cmp - "$tmp/expected"
report $? what_the_program_sees_is_500

version=$(sed -n 's/^runtime version \([0-9]*\):.*/\1/p' "$tmp/shared.out")
if [ "$update" = --update ]; then
    { echo "# cudart $version: name version flags -> result pointer status"; cat "$tmp/shared.trace"; } > "$golden"
fi
if [ "$(sed -n 1p "$golden" | cut -d' ' -f3)" = "$version:" ]; then
    sed 1d "$golden" | diff -u - "$tmp/shared.trace"
    report $? questions_and_answers_are_the_golden_ones
else
    echo "ok questions_and_answers_are_the_golden_ones # left out: the toolkit's cudart is $version"
fi
exit $failed
