#!/bin/bash
# What serving by a plan does to a program's rate on a card, and to its peak memory: each program bare and served by the plan of its own record, in
# turns (bench_rate.py). A decode loop that does not allocate may lose 0.5 %; programs that allocate for each request are to be faster.
# STAGE is the folder that scripts/stage makes; names after OUT measure only those, and serving, serving_graphs and serving_expandable only where
# named. OUT receives rate.json and table.txt. Under 150 s, bounded by BENCH_SECONDS.
# Exit code 1 where a program failed, a limit was missed, outputs differ, or a served process served nothing.
set -u

if [ $# -lt 2 ]; then
	echo "usage: tests/gpu/bench_rate.sh STAGE OUT [engine|serving_uncached|serving_async|decode|serving|serving_graphs|serving_expandable ...]" >&2
	exit 2
fi
only=" ${*:3} "
here=$(cd "$(dirname "$0")" && pwd)
stage=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" || exit 2
out=$(cd "$2" && pwd)
seconds=${BENCH_SECONDS:-140}
library=$stage/lib/libtenure.so
engine=$stage/gpu/serving_engine_static
for file in "$library" "$stage/bin/tenure" "$engine"; do
	if ! [ -e "$file" ]; then
		echo "bench_rate.sh: $file is not there; run scripts/stage" >&2
		exit 2
	fi
done
# The runs' journals are for nobody to read: they go with this script.
work=$(mktemp -d "$out/work-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT

# program NAME LIMIT PAIRS BLOCKS SHARE ENVIRONMENT COMMAND...: one object; ENVIRONMENT is NAME=VALUE or empty.
program() {
	[ "$only" = "  " ] || [[ $only == *" $1 "* ]] || return 0
	python3 -c 'import json, sys
name, limit, pairs, blocks, share, setting = sys.argv[1:7]
print(json.dumps({"name": name, "limit": float(limit), "pairs": int(pairs), "blocks": int(blocks), "share": float(share),
                  "environment": dict([setting.split("=", 1)] if setting else []), "command": sys.argv[7:]}))' "$@"
}
# Share: how the time for pairs is divided, starts included. The decode loop has the tightest limit.
{
	program engine 1.0 4 12 2 '' "$engine" --worker --slice 20 --kv-cap 4096
	program serving_uncached 1.0 3 5 3 PYTORCH_NO_CUDA_MEMORY_CACHING=1 python3 "$here/frameworks/torch_serving.py" --worker 3
	program serving_async 1.0 3 5 3 PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync python3 "$here/frameworks/torch_serving.py" --worker 3
	program decode 1.005 10 12 6 '' python3 "$here/bench_torch_decode.py" --steps 12 --gate
	for kind in "serving" "serving_graphs GRAPHS=1" "serving_expandable PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"; do
		read -r name setting <<<"$kind"
		[[ $only != *" $name "* ]] || program "$name" 1.005 5 16 3 "$setting" python3 "$here/frameworks/torch_serving.py" --worker 3
	done
} | python3 -c 'import json, sys; print(json.dumps([json.loads(line) for line in sys.stdin], indent=1))' >"$work/programs.json" || exit 2

{
	echo "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1); $(nproc) cores, $(uname -sr), $(date -u +%Y-%m-%dT%H:%M:%SZ)"
	timeout -k 5 $((seconds + 10)) python3 "$here/bench_rate.py" --library "$library" --tenure "$stage/bin/tenure" --programs "$work/programs.json" \
		--work "$work/runs" --json "$out/rate.json" --seconds "$seconds"
	code=$?
	[ "$code" -lt 124 ] || echo "FAILED: bench_rate.py ended with $code"
	echo "took $SECONDS s; figures in $out"
	[ "$code" = 0 ]
} 2>&1 | tee "$out/table.txt"
exit "${PIPESTATUS[0]}"
