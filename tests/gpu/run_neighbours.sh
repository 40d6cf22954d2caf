#!/bin/bash
# Neighbours on a GPU: the same program under a tool alone (compute-sanitizer, cuda-gdb, ncu, nsys) and under the tool with the
# shim in front. Wanted: the program's own lines equal, the tool's exit code equal, a run folder that can be read. A tool that is
# not installed is named and skipped. STAGE and OUT as for run_stand.sh. Under three minutes.
# Prints "ok NAME", "not ok NAME: why" or "skip NAME" and "N passed, M failed" last; exit code 1 if any failed.
set -u
export STAND_SECONDS=${STAND_SECONDS:-200}
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"

program=$programs/cublas_gemm_shared

# The program's own lines: key=value. Tools put theirs between; figures of the device's free memory are the tool's as well.
own_lines() { grep -aE '^[a-z_0-9.]+=' "$1" | grep -v 'used_mib'; }

# neighbour NAME LIMIT TOOL ARGUMENT...: the arguments stand before the program.
neighbour() {
	local name=$1 limit=$2
	shift 2
	if ! command -v "$1" >/dev/null; then
		echo "skip $name: $1 is not installed"
		return
	fi
	run "$limit" "$name.alone" env LD_LIBRARY_PATH="$toolkit_path" "$@" "$program"
	rm -rf "$out/run.$name"
	mkdir -p "$out/run.$name"
	# The preload in front of the tool and of all that it starts, as somebody's environment would have it.
	run "$limit" "$name.record" env LD_LIBRARY_PATH="$toolkit_path" "$tool/tenure" record -o "$out/run.$name" -- "$@" "$program"
	if [ "$(cat "$out/$name.alone.rc")" != "$(cat "$out/$name.record.rc")" ]; then
		not_ok "$name.exit" "alone $(cat "$out/$name.alone.rc"), recorded $(cat "$out/$name.record.rc")"
		show_tail "$out/$name.record.err" 10
		show_tail "$out/$name.record.out" 10
	elif ! own_lines "$out/$name.alone.out" | grep -q .; then
		not_ok "$name.output" "the tool alone gave no line of the program's"
		show_tail "$out/$name.alone.out" 10
	elif diff <(own_lines "$out/$name.alone.out") <(own_lines "$out/$name.record.out") >"$out/$name.diff.txt"; then
		ok "$name.output"
	else
		not_ok "$name.output" "the program's lines differ"
		show_tail "$out/$name.diff.txt" 20
	fi
	if run 30 "$name.report" "$tool/tenure" report "$out/run.$name"; then
		ok "$name.report"
		sed -n '1,12p' "$out/$name.report.out" | sed 's/^/#   /'
	else
		not_ok "$name.report" "tenure report failed"
		show_tail "$out/$name.report.err"
	fi
}

neighbour sanitizer 60 compute-sanitizer --tool memcheck
neighbour sanitizer_initcheck 60 compute-sanitizer --tool initcheck
neighbour gdb 60 cuda-gdb -batch -ex run --args
neighbour ncu 60 ncu --launch-count 1
neighbour nsys 60 nsys profile -o "$out/nsys" --force-overwrite true

finish
