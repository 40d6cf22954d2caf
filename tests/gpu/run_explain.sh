#!/bin/bash
# Where the memory went, on a GPU: programs of the issue's list are recorded, and at every mark and at the end the bytes that no line of the
# report has must be at most 0.5 % of what the run uses, and the lines named growth, other or unknown at most 1 % together. Then the engine once
# more with one hook switched off: unattributed bytes rise by exactly what that hook would have recorded. Prints a table; under four minutes.
# STAGE and OUT as for run_stand.sh; EXPLAIN_ONLY may name some of the programs.
# Prints "ok NAME" or "not ok NAME: why" per check and "N passed, M failed" last; exit code 1 if any failed.
set -u
export STAND_SECONDS=${STAND_SECONDS:-235}
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"
scripts=$here/explain
own_path=${LD_LIBRARY_PATH:-}

# explain NAME LIMIT LIBRARY_PATH COMMAND...
explain() {
	local name=$1 limit=$2 path=$3
	shift 3
	[ -z "${EXPLAIN_ONLY:-}" ] || [[ " $EXPLAIN_ONLY " == *" $name "* ]] || return 0
	rm -rf "$out/run.$name"
	if ! run "$limit" "$name" env LD_LIBRARY_PATH="$path" PYTHONPATH="$scripts${PYTHONPATH:+:$PYTHONPATH}" \
		"$tool/tenure" record -o "$out/run.$name" -- "$@"; then
		not_ok "$name" "the recorded run ended with $(cat "$out/$name.rc")"
		show_tail "$out/$name.err"
		return
	fi
	if run 30 "$name.json" "$tool/tenure" report --json "$out/run.$name" &&
		python3 "$scripts/explain_check.py" bounds "$name" "$out/$name.json.out" >"$out/$name.table.txt" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "more than 0.5 % is unattributed, or more than 1 % is growth"
	fi
	cat "$out/$name.table.txt"
}

# hidden NAME ROWS BASE: the engine once more, with ROWS switched off; against the run BASE.
hidden() {
	local name=$1 rows=$2 base=$3
	[ -z "${EXPLAIN_ONLY:-}" ] || [[ " $EXPLAIN_ONLY " == *" $name "* ]] || return 0
	rm -rf "$out/run.$name"
	run 30 "$name" env TENURE_TEST_HIDE="$rows" "$tool/tenure" record -o "$out/run.$name" -- "$engine" quiet
	run 30 "$name.json" "$tool/tenure" report --json "$out/run.$name"
	if python3 "$scripts/explain_check.py" hidden "$out/$base.json.out" "$out/$name.json.out" >"$out/$name.table.txt" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "unattributed bytes did not rise by what was hidden"
	fi
	cat "$out/$name.table.txt"
}

engine=$(built explain_engine) || exit 2
torch=$scripts/torch_model.py

explain cublas_static 40 "$toolkit_path" "$programs/cublas_gemm_static"
explain cublas_shared 40 "$toolkit_path" "$programs/cublas_gemm_shared"
explain engine 40 "$own_path" "$engine"
explain engine_quiet 40 "$own_path" "$engine" quiet
explain torch 60 "$own_path" python3 "$torch"
explain torch_expandable 60 "$own_path" env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 "$torch"
explain torch_async 60 "$own_path" env PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync python3 "$torch"
for how in pool async raw; do
	explain "cupy_$how" 40 "$own_path" python3 "$scripts/cupy_pools.py" "$how"
done
explain jax 60 "$own_path" env XLA_PYTHON_CLIENT_PREALLOCATE=false python3 "$scripts/jax_layers.py"
explain jax_preallocated 60 "$own_path" env XLA_PYTHON_CLIENT_PREALLOCATE=true python3 "$scripts/jax_layers.py"
explain triton 60 "$own_path" python3 "$scripts/triton_kernels.py"
# One thread loads: beside others a call without a record may also hide what was theirs (see docs/REPORT.md).
hidden hidden_blocks cuMemAlloc,cudaMalloc engine_quiet
hidden hidden_pool cuMemAllocAsync,cudaMallocAsync engine_quiet
hidden hidden_managed cuMemAllocManaged,cudaMallocManaged engine_quiet

finish
