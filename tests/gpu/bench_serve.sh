#!/bin/bash
# What a pair of allocation and free costs on a card, bare and served by a plan that is made of the program's own record (bench_serve).
# STAGE is the folder that scripts/stage makes. OUT receives serve.jsonl, pools.jsonl and table.txt. Under six minutes.
# Exit code 1 where a part failed, a planned request was not served, or the target was missed: 150 ns for a served pair of plain device memory.
set -u

if [ $# -ne 2 ]; then
	echo "usage: tests/gpu/bench_serve.sh STAGE OUT" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
stage=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" || exit 2
out=$(cd "$2" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
turns=${BENCH_TURNS:-51}
work=$(mktemp -d "$out/work-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT

cudart_dir=
for dir in "$cuda/lib64" "$cuda/targets/$(uname -m)-linux/lib"; do
	[ -z "$cudart_dir" ] && [ -e "$dir/libcudart.so.13" ] && cudart_dir=$dir
done
[ -n "$cudart_dir" ] && export LD_LIBRARY_PATH="$cudart_dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$here/bench_serve_lines.sh" "$stage/tests/gpu/bench_serve" "$stage/lib/libtenure.so" "$stage/bin/tenure" "$work" "$turns" >"$out/serve.jsonl"
made=$?
# Beside them, in the same run, the pools of two frameworks; where they are not installed their rows are missing, and that is said.
timeout -k 5 100 python3 "$here/bench_pools.py" 21 >"$out/pools.jsonl" || made=1
python3 - "$out/serve.jsonl" "$out/pools.jsonl" "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)" <<'PY' | tee "$out/table.txt"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
costs = {(l["case"], l["clock"]): l for l in lines if l["group"] == "serve"}
missed = []
print(sys.argv[3] or "no nvidia-smi")
print(f"{'NS A PAIR, BY THE CLOCK':52} {'BARE':>10} {'SERVED':>10} {'P10':>8} {'P90':>8}")
for (case, clock), served in costs.items():
    if clock != "wall" or not case.endswith(", served"):
        continue
    name = case[: -len(", served")]
    print(f"{name:52} {costs[name + ', bare', clock]['median']:10.0f} {served['median']:10.0f} {served['p10']:8.0f} {served['p90']:8.0f}")
    if name.startswith("cudaMalloc, ") and "threads" not in name and served["median"] > 150:
        missed.append(f"{name}: {served['median']:.0f} ns")
print(f"{'POOLS, BY THE CLOCK':52} {'NS A PAIR':>10} {'P10':>8} {'P90':>8}")
for l in (json.loads(line) for line in open(sys.argv[2])):
    if l["clock"] == "wall":
        print(f"{l['case']:52} {l['median']:10.0f} {l['p10']:8.0f} {l['p90']:8.0f}")
print(f"{'WAITS':20} {'PAIRS':>8} {'SERVED':>8} {'SPILLED':>8} {'A 1000':>8}")
for l in lines:
    if l["group"] == "waits":
        print(f"{l['case']:20} {l['pairs']:8} {l['served']:8} {l['spilled']:8} {l['waits_per_1000']:8.1f}")
        if l["spilled"]:
            missed.append(f"{l['case']}: {l['spilled']} requests spilled")
for line in missed:
    print("FAILED:", line)
sys.exit(1 if missed or not costs else 0)
PY
[ "${PIPESTATUS[0]}" = 0 ] && [ $made = 0 ]
