#!/bin/bash
# Holds `tenure record` against real programs on a GPU: each runs bare and recorded, with the same output; the
# journal's calls per API equal an independent CUPTI count of the same run; cuBLAS's own allocations carry cuBLAS in
# their stack. STAGE is the folder that scripts/stage makes (bin/tenure, bin/legacy_engine, lib/libtenure.so ...), with
# the programs of build.sh in STAGE/gpu or built on the spot. OUT receives outputs, reports, counts, run folders, and
# results.tgz with all of the text. Under five minutes.
# Prints "ok NAME" or "not ok NAME: why" per check and "N passed, M failed" last; exit code 1 if any failed.
set -u
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"

for kind in static shared; do
	levels=driver
	[ $kind = shared ] && levels=driver,runtime
	name=cublas_$kind
	bare_and_recorded $name 40 "$toolkit_path" "$programs/cublas_gemm_$kind"
	report_of $name && has_module $name libcublas
	counted $name $levels 40 "$toolkit_path" "$programs/cublas_gemm_$kind"
done

# PyTorch brings its own libraries; a foreign LD_LIBRARY_PATH would exchange them.
torch="python3 $here/torch_graph_conv.py"
bare_and_recorded torch 60 "${LD_LIBRARY_PATH:-}" $torch
run 60 torch.again env LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" $torch
if [ "$(cat "$out/torch.again.rc")" = 0 ] && cmp -s "$out/torch.native.out" "$out/torch.again.out"; then
	ok torch.stable
else
	not_ok torch.stable "two bare runs differ; the comparison with the recorded run says nothing"
fi
report_of torch && has_module torch libcublas
counted torch driver,runtime 60 "${LD_LIBRARY_PATH:-}" $torch

if [ -x "$tool/legacy_engine" ]; then
	for config in dense moe vision; do
		bare_and_recorded "engine_$config" 30 "$toolkit_path" "$tool/legacy_engine" --config $config
		report_of "engine_$config"
	done
	counted engine_dense driver,runtime 30 "$toolkit_path" "$tool/legacy_engine" --config dense
else
	not_ok engine "$tool/legacy_engine is not there"
fi

bare_and_recorded facts 75 "$toolkit_path" "$programs/facts" --kernels
# Without a card every line is the same error, and comparing them would show nothing.
if grep -q '^queries.cudaMemGetInfo=0$' "$out/facts.native.out"; then
	ok facts.on_gpu
else
	not_ok facts.on_gpu "the bare run found no working device"
fi

run 30 safe_calls env LD_LIBRARY_PATH="$toolkit_path" "$programs/safe_calls"
if [ "$(tail -n 1 "$out/safe_calls.out")" = "result=done" ]; then
	ok safe_calls
	grep -E '^(summary.*=(unsafe|refused)|latency)' "$out/safe_calls.out" | sed 's/^/#   /'
else
	not_ok safe_calls "did not finish"
	show_tail "$out/safe_calls.out"
fi

finish
