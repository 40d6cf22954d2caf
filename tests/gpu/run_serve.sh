#!/bin/bash
# Serving by a plan on a GPU: each program runs bare, recorded, and served by the plan of its own record. Wanted: the same standard output three
# times, calls served, nothing unplanned, and in the served run no allocation of the driver's while serving that is not named here. STAGE
# and OUT as for run_stand.sh; names after them run only those. About four minutes.
# Prints "ok NAME" or "not ok NAME: why" per check and "N passed, M failed" last; exit code 1 if any failed.
set -u
export STAND_SECONDS=${STAND_SECONDS:-400}
only=" ${*:3} "
set -- "$1" "$2"
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"

figure() { # LABEL PATH: a figure of a report's JSON, or "none"
	python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."):
    v = v[int(k)] if isinstance(v, list) else v.get(k)
    if v is None: break
print("none" if v is None else v)' "$out/$1.out" "$2" 2>/dev/null || echo none
}

# What a program prints of free memory is, under a plan, by the plan's account and not the device's: those lines alone may differ.
same_but_free_memory() {
	if [ "$(cat "$out/$1.native.rc")" = 0 ] && [ "$(cat "$out/$1.serve.rc")" = 0 ] && [ -s "$out/$1.native.out" ] &&
		cmp -s <(grep -vE 'used_mib|^pool used_high|memory_trim' "$out/$1.native.out") <(grep -vE 'used_mib|^pool used_high|memory_trim' "$out/$1.serve.out"); then
		ok "$1.serve.output"
	else
		same_as_bare "$1" serve
	fi
}

# serve NAME LIMIT LIBRARY_PATH SERVING_LINE COMMAND...: `says`: the program says by tenure.h when it serves. The driver's memory figures that a program prints are its own affair.
serve() {
	local name=$1 limit=$2 path=$3 line=$4 served spilled unplanned before after
	shift 4
	local when=(--serving-when "line:$line")
	case $line in '' | says) when=() ;; esac
	[ "$only" = "  " ] || [[ $only == *" $name "* ]] || return 0
	run "$limit" "$name.native" env LD_LIBRARY_PATH="$path" "$@" || show_tail "$out/$name.native.err" 10
	rm -rf "$out/run.$name" "$out/run.$name.serve"
	run "$limit" "$name.record" env LD_LIBRARY_PATH="$path" "$tool/tenure" record "${when[@]}" -o "$out/run.$name" -- "$@"
	same_as_bare "$name" record
	if ! run 60 "$name.plan" "$tool/tenure" plan "$out/run.$name" -o "$out/$name.json"; then
		not_ok "$name.plan" "no plan"
		show_tail "$out/$name.plan.err"
		return
	fi
	run "$limit" "$name.serve" env LD_LIBRARY_PATH="$path" "$tool/tenure" run --plan "$out/$name.json" "${when[@]}" \
		-o "$out/run.$name.serve" -- "$@"
	same_but_free_memory "$name"
	run 30 "$name.json0" "$tool/tenure" report --json "$out/run.$name"
	run 30 "$name.json1" "$tool/tenure" report --json "$out/run.$name.serve"
	run 30 "$name.report" "$tool/tenure" report "$out/run.$name.serve"
	served=$(figure "$name.json1" routing.served_calls)
	spilled=$(figure "$name.json1" routing.spilled_calls)
	unplanned=$(figure "$name.json1" routing.unplanned_calls)
	before=$(figure "$name.json0" serving.driver_allocations)
	after=$(figure "$name.json1" serving.driver_allocations)
	echo "#   $name: served $served, spilled $spilled, unplanned $unplanned; driver allocations while serving $before recorded, $after served"
	grep -h request_ms "$out/$name.native.err" "$out/$name.record.err" "$out/$name.serve.err" | sed 's/^/#   /'
	sed -n '/^Routing/,/^$/p' "$out/$name.report.out" | sed 's/^/#   /'
	case $served in 0 | none) not_ok "$name.served" "no call was served" ;; *) ok "$name.served" ;; esac
	if [ "$unplanned" = 0 ]; then ok "$name.unplanned"; else not_ok "$name.unplanned" "$unplanned"; fi
	if [ -z "$line" ] || [ "$after" = 0 ]; then ok "$name.serving"; else not_ok "$name.serving" "$after allocations of the driver while serving"; fi
}

torch=$here/frameworks/torch_serving.py
serve gemm_static 30 "$toolkit_path" '' "$programs/cublas_gemm_static"
serve gemm_shared 30 "$toolkit_path" '' "$programs/cublas_gemm_shared"
for runtime in static shared; do
	serve "serving_engine_$runtime" 30 "$toolkit_path" says "$programs/serving_engine_$runtime"
done
for config in dense moe vision; do
	serve "engine_$config" 60 "$toolkit_path" says "$tool/legacy_engine" --config "$config" --instrumented
done
serve cupy 60 "${LD_LIBRARY_PATH:-}" '' python3 "$here/frameworks/cupy_arrays.py"
serve cupy_async 60 "${LD_LIBRARY_PATH:-}" '' python3 "$here/frameworks/cupy_async.py"
serve jax 80 "${LD_LIBRARY_PATH:-}" '' env XLA_PYTHON_CLIENT_PREALLOCATE=false python3 "$here/frameworks/jax_product.py"
serve torch 60 "${LD_LIBRARY_PATH:-}" '^serving' python3 "$torch"
serve torch_uncached 60 "${LD_LIBRARY_PATH:-}" '^serving' env PYTORCH_NO_CUDA_MEMORY_CACHING=1 python3 "$torch"
serve torch_async 60 "${LD_LIBRARY_PATH:-}" '^serving' env PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync python3 "$torch"
serve torch_graphs 60 "${LD_LIBRARY_PATH:-}" '^serving' env GRAPHS=1 python3 "$torch"
serve torch_expandable 60 "${LD_LIBRARY_PATH:-}" '^serving' env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 "$torch"

finish
