#!/bin/bash
# What `tenure record` costs on a card: the nanoseconds added to whole calls (bench_calls, bare and recorded batches in turns), the journal's
# bytes per event in the same loops, and the decode steps of a PyTorch model (bench_torch_pairs.py), bare and recorded processes and, more exactly, within one process.
# STAGE is the folder that scripts/stage makes. OUT receives calls.jsonl, torch.json, torch_aside.json, bench.json (everything, with
# the machine) and table.txt. Under three minutes.
# Exit code 1 where a part failed or a target was missed: 400 ns added to a call, 1 % to a decode step.
set -u

if [ $# -ne 2 ]; then
	echo "usage: tests/gpu/bench_record.sh STAGE OUT" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
stage=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" || exit 2
out=$(cd "$2" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
seconds=${BENCH_SECONDS:-170}
turns=${BENCH_TURNS:-301}
limit_ns=400
library=$stage/lib/libtenure.so
calls=$stage/tests/gpu/bench_calls
for file in "$library" "$calls"; do
	if ! [ -e "$file" ]; then
		echo "bench_record.sh: $file is not there; run scripts/stage" >&2
		exit 2
	fi
done

# The runs' journals are for nobody to read: they go with this script. Figures stay in a few small files.
work=$(mktemp -d "$out/work-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
	failed=1
	echo "FAILED: $*" | tee -a "$out/table.txt"
}
left() { echo $((seconds - SECONDS)); }

# The folder of libcudart.so.13: what the caller set, the toolkit's, else the one that PyTorch brought.
cudart_dir=
IFS=: read -r -a given <<<"${LD_LIBRARY_PATH:-}"
for dir in ${given[0]+"${given[@]}"} "$cuda/lib64" "$cuda/targets/$(uname -m)-linux/lib" \
	$(python3 -c 'import site, sys
print("\n".join(p + "/nvidia/cu13/lib" for p in sys.path + site.getsitepackages() if p.endswith("-packages")))
print("\n".join(p + "/nvidia/cuda_runtime/lib" for p in sys.path + site.getsitepackages() if p.endswith("-packages")))' 2>/dev/null); do
	[ -z "$cudart_dir" ] && [ -n "$dir" ] && [ -e "$dir/libcudart.so.13" ] && cudart_dir=$dir
done
[ -n "$cudart_dir" ] || echo "# libcudart.so.13 not found; set CUDA_HOME"
with_cudart() { env LD_LIBRARY_PATH="$cudart_dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"; }

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
{
	echo "${gpu:-no nvidia-smi}; $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $(uname -sr), $(date -u +%Y-%m-%dT%H:%M:%SZ)"
} | tee "$out/table.txt"

mkdir "$work/calls"
if ! with_cudart timeout -k 5 60 "$calls" compare "$turns" "$library" "$work/calls" >"$out/calls.jsonl"; then
	fail "bench_calls"
fi
# The same with nothing to find, for how far the method is to be trusted.
with_cudart timeout -k 5 30 "$calls" compare 51 - - 2>/dev/null | sed 's/"calls"/"calls_null"/; s/, recorded"/, bare again"/' >>"$out/calls.jsonl"

# journal_bytes OPERATION N: length of the journal after N.
journal_bytes() {
	rm -rf "$work/loop"
	mkdir "$work/loop"
	with_cudart env LD_PRELOAD="$library" TENURE_RUN="$work/loop" timeout -k 5 30 "$calls" loop "$1" "$2" >&2 || return 1
	stat -c %s "$work"/loop/*.tnj
}
for operation in plain async launch copy; do
	if few=$(journal_bytes $operation 1000) && many=$(journal_bytes $operation 6000); then
		echo "{\"group\":\"journal\",\"case\":\"$operation\",\"operations\":5000,\"bytes\":$((many - few))}" >>"$out/calls.jsonl"
	else
		fail "the journal's size, $operation"
	fi
done

# decode NAME SECONDS ARGUMENT...: ten pairs of the decode steps, figures in NAME.json.
decode() {
	local name=$1 limit=$2
	shift 2
	mkdir "$work/$name"
	if ! timeout -k 5 $((limit + 20)) python3 "$here/bench_torch_pairs.py" --runs "$work/$name" --json "$out/$name.json" \
		--pairs 10 --seconds "$limit" "$@" >"$work/$name.txt" 2>"$out/$name.err"; then
		fail "the decode steps ($name): a part failed, fewer than 10 pairs were made, tokens differ, or more than 1 % was added"
		tail -n 5 "$out/$name.err"
	fi
	[ -s "$out/$name.err" ] || rm -f "$out/$name.err"
}
decode torch $((($(left) - 10) * 11 / 20)) --library "$library"
decode torch_aside $(($(left) - 10)) --library "$stage/tests/gpu/libtenure_aside.so" --aside

python3 "$here/bench_table.py" "$out" "$limit_ns" "${gpu:-none}" | tee -a "$out/table.txt"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1
cat "$work/torch.txt" "$work/torch_aside.txt" | tee -a "$out/table.txt"
echo "took $SECONDS s; figures in $out" | tee -a "$out/table.txt"
exit $failed
