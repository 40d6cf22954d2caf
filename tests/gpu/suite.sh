# shellcheck shell=bash
# What the suites for a GPU share: STAGE and OUT from the command line, a program run bare, recorded, and recorded once more
# beside CUPTI's counter, and the checks on what comes of it. Sourced, with STAGE and OUT as arguments; sets $stage, $out,
# $tool (folder of `tenure`), $programs, $here and the libraries' folders. The caller ends with `finish`.
if [ $# -ne 2 ]; then
	echo "usage: $0 STAGE OUT" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
tool=
for folder in "$1/bin" "$1"; do
	[ -z "$tool" ] && [ -x "$folder/tenure" ] && [ ! -d "$folder/tenure" ] && tool=$(cd "$folder" && pwd)
done
if [ -z "$tool" ]; then
	echo "$0: neither $1/bin/tenure nor $1/tenure can be run" >&2
	exit 2
fi
stage=$(cd "$1" && pwd)
mkdir -p "$2" || exit 2
out=$(cd "$2" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
deadline=${STAND_SECONDS:-285}
passed=0
failed=0

ok() {
	passed=$((passed + 1))
	echo "ok $1"
}

not_ok() {
	failed=$((failed + 1))
	echo "not ok $1: $2"
}

# run LIMIT LABEL COMMAND...: output to OUT/LABEL.out and .err, the exit code to OUT/LABEL.rc. Never beyond the deadline.
run() {
	local limit=$1 label=$2 left=$((deadline - SECONDS)) began=$SECONDS code
	shift 2
	[ "$left" -lt "$limit" ] && limit=$left
	if [ "$limit" -le 0 ]; then
		echo "no time left" >"$out/$label.err"
		: >"$out/$label.out"
		code=125
	else
		timeout -k 5 "$limit" "$@" >"$out/$label.out" 2>"$out/$label.err" </dev/null
		code=$?
	fi
	echo "$code" >"$out/$label.rc"
	echo "# $label: exit $code after $((SECONDS - began)) s"
	return "$code"
}

show_tail() {
	tail -n "${2:-5}" "$1" 2>/dev/null | sed 's/^/#   /'
}

# Folder that holds a library: the toolkit's, else the one PyTorch brought.
find_library() {
	local python_dirs
	for dir in "$cuda/lib64" "$cuda/extras/CUPTI/lib64" "$cuda/targets/$(uname -m)-linux/lib"; do
		[ -e "$dir/$1" ] && { echo "$dir"; return 0; }
	done
	python_dirs=$(python3 -c 'import site, sys
print("\n".join(p for p in sys.path + site.getsitepackages() if p.endswith("-packages")))' 2>/dev/null)
	for base in $python_dirs; do
		for dir in "$base"/nvidia/*/lib; do
			[ -e "$dir/$1" ] && { echo "$dir"; return 0; }
		done
	done
	return 1
}

cudart_dir=$(find_library libcudart.so.13) || echo "# libcudart.so.13 not found; set CUDA_HOME"
cublas_dir=$(find_library libcublas.so.13) || echo "# libcublas.so.13 not found; set CUDA_HOME"
cupti_dir=$(find_library libcupti.so.13) || echo "# libcupti.so.13 not found; set CUDA_HOME"
# shellcheck disable=SC2034 # for the suites
toolkit_path="${cudart_dir:-}:${cublas_dir:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

programs=
for folder in "$stage/gpu" "$stage/tests/gpu"; do
	[ -z "$programs" ] && [ -x "$folder/facts" ] && [ -x "$folder/safe_calls" ] && [ -x "$folder/cublas_gemm_static" ] &&
		[ -x "$folder/cublas_gemm_shared" ] && [ -x "$folder/serving_engine_static" ] && [ -x "$folder/serving_engine_shared" ] && [ -e "$folder/libcupti_counter.so" ] && programs=$folder
done
if [ -z "$programs" ]; then
	programs=$out/bin
	if ! run 60 build "$here/build.sh" "$programs"; then
		not_ok build "see build.err"
		show_tail "$out/build.err" 20
		echo "$passed passed, $failed failed"
		exit 1
	fi
fi

echo "# $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -1)"
echo "# $(uname -sr), $(getconf GNU_LIBC_VERSION 2>/dev/null), $(date -u +%Y-%m-%dT%H:%M:%SZ)"

# built NAME: where a program stands that no machine with a GPU can build: in the folder that was given, or beside this suite, whichever copy
# of the suite was started. Ends the suite where it is in neither.
built() {
	local folder
	for folder in "$stage/tests/gpu" "$here"; do
		[ -x "$folder/$1" ] && { echo "$folder/$1"; return 0; }
	done
	echo "$0: no $1 in $stage/tests/gpu; run scripts/stage where the project is built, and give its folder" >&2
	return 1
}

without_memory() {
	grep -v '^phase=.*used_mib' "$out/$1.out"
}

same_as_bare() {
	local name=$1 variant=$2 bare recorded
	bare=$(cat "$out/$name.native.rc")
	recorded=$(cat "$out/$name.$variant.rc")
	if [ "$bare" != 0 ]; then
		not_ok "$name.$variant.output" "the bare run ended with $bare"
	elif [ "$recorded" != 0 ]; then
		not_ok "$name.$variant.output" "the recorded run ended with $recorded"
		show_tail "$out/$name.$variant.err" 10
	elif ! [ -s "$out/$name.native.out" ]; then
		not_ok "$name.$variant.output" "the bare run printed nothing"
	elif cmp -s "$out/$name.native.out" "$out/$name.$variant.out"; then
		ok "$name.$variant.output"
	elif [ "$variant" = cupti ] && cmp -s <(without_memory "$name.native") <(without_memory "$name.cupti"); then
		ok "$name.$variant.output" # but for the device's free memory, of which CUPTI takes some itself
	else
		not_ok "$name.$variant.output" "differs from the bare run"
		diff "$out/$name.native.out" "$out/$name.$variant.out" | head -40 | sed 's/^/#   /'
	fi
}

report_of() {
	local name=$1
	if run 30 "$name.report" "$tool/tenure" report "$out/run.$name" &&
		run 30 "$name.json" "$tool/tenure" report --json "$out/run.$name"; then
		ok "$name.report"
		return 0
	fi
	not_ok "$name.report" "tenure report failed"
	show_tail "$out/$name.report.err"
	show_tail "$out/$name.json.err"
	return 1
}

# bare_and_recorded NAME LIMIT LIBRARY_PATH COMMAND...
bare_and_recorded() {
	local name=$1 limit=$2 path=$3
	shift 3
	run "$limit" "$name.native" env LD_LIBRARY_PATH="$path" "$@" || show_tail "$out/$name.native.err" 10
	rm -rf "$out/run.$name"
	run "$limit" "$name.record" env LD_LIBRARY_PATH="$path" "$tool/tenure" record -o "$out/run.$name" -- "$@"
	same_as_bare "$name" record
}

# counted NAME LEVELS LIMIT LIBRARY_PATH COMMAND...: recorded once more, with CUPTI counting in the same process.
counted() {
	local name=$1 levels=$2 limit=$3 path=$4
	shift 4
	rm -rf "$out/run.$name.cupti" "$out/$name.counts"
	run "$limit" "$name.cupti" env LD_LIBRARY_PATH="$path" CUPTI_COUNTS="$out/$name.counts" \
		CUPTI_LIBRARY="${cupti_dir:-/nowhere}/libcupti.so.13" CUDA_INJECTION64_PATH="$programs/libcupti_counter.so" \
		"$tool/tenure" record -o "$out/run.$name.cupti" -- "$@"
	same_as_bare "$name" cupti
	if ! [ -s "$out/$name.counts" ]; then
		not_ok "$name.counts" "CUPTI wrote no counts"
		show_tail "$out/$name.cupti.err"
		return
	fi
	report_of "$name.cupti" || return
	if python3 "$here/stand_check.py" counts "$out/$name.cupti.json.out" "$out/$name.counts" "$levels" \
		>"$out/$name.table.txt" 2>&1; then
		ok "$name.counts"
	else
		not_ok "$name.counts" "the journal and CUPTI disagree"
	fi
	sed 's/^/#   /' "$out/$name.table.txt"
}

has_module() {
	local name=$1 module=$2
	if python3 "$here/stand_check.py" module "$out/$name.json.out" "$module" >"$out/$name.module.txt" 2>&1; then
		ok "$name.$module"
	else
		not_ok "$name.$module" "no allocation has $module in its stack"
	fi
	head -30 "$out/$name.module.txt" | sed 's/^/#   /'
}

# Packs the text, and prints the last line; the exit code of the suite.
finish() {
	(cd "$out" && tar czf results.tgz --ignore-failed-read ./*.out ./*.err ./*.rc ./*.counts ./*.txt 2>/dev/null)
	echo "# took $SECONDS s; outputs in $out, all text in results.tgz"
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}
