#!/bin/bash
# Records bench_serve, plans, compares bare and served, and counts the waits of each case in a process of its own. Prints JSON lines. On a card
# bench_serve.sh calls it, on the fake GPU scripts/bench. LD_LIBRARY_PATH says which of them.
set -u
if [ $# -ne 5 ]; then
	echo "usage: bench_serve_lines.sh BENCH_SERVE LIBTENURE TENURE WORK TURNS" >&2
	exit 2
fi
program=$1 library=$2 tenure=$3 work=$4 turns=$5
fail() {
	echo "bench_serve_lines.sh: $*" >&2
	exit 1
}
mkdir -p "$work/record" "$work/compare" || exit 1
timeout -k 5 120 "$program" record "$library" "$work/record" >&2 || fail "the recorded program failed"
timeout -k 5 300 "$tenure" plan "$work/record" -o "$work/plan.json" >"$work/plan.txt" 2>&1 || { cat "$work/plan.txt" >&2; fail "tenure plan failed"; }
timeout -k 5 400 "$program" compare "$turns" "$library" "$work/plan.json" "$work/compare" || fail "the comparison failed"
for name in $("$program" cases); do
	mkdir "$work/$name" || exit 1
	pairs=$(timeout -k 5 60 "$program" once "$name" 10 "$library" "$work/plan.json" "$work/$name") || fail "$name failed"
	timeout -k 5 60 "$tenure" report "$work/$name" --json >"$work/$name.json" || fail "the report of $name failed"
	python3 - "$work/$name.json" "$name" "$pairs" <<'PY' || fail "the report of $name has no routing"
import json, sys
routing = json.load(open(sys.argv[1]))["routing"]
if routing["served_calls"] is None: # a case that allocates nothing
    sys.exit(0)
# Per thread what the program timed; the calls are those of all threads, and of the blocks that stay.
calls = routing["served_calls"] + routing["spilled_calls"]
print(json.dumps({"group": "waits", "case": sys.argv[2], "pairs": int(sys.argv[3]), "served": routing["served_calls"], "spilled": routing["spilled_calls"],
                  "waits": routing["waited_calls"], "waits_per_1000": routing["waited_calls"] * 1000 / max(calls, 1)}))
PY
	rm -rf "${work:?}/$name"
done
