#!/bin/bash
# What a GPU answered (golden/), what the fake card answers to the same programs, and what they are told under the shim.
# usage: test_facts_golden.sh GOLDEN_DIR FACTS SAFE_CALLS TENURE LIBTENURE LIBRARY...
# Prints "ok NAME" or "not ok NAME" for each section of each comparison, and the first lines that differ.
golden=$(realpath "$1") facts=$(realpath "$2") safe_calls=$(realpath "$3") tenure=$(realpath "$4")
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/golden-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
cp -L "${@:5}" "$work/lib/" || exit 1
export TENURE_LIB="$work/lib/libtenure.so"
export LD_LIBRARY_PATH="$work/lib"
unset LD_PRELOAD TENURE_RUN TENURE_PLAN
cd "$work" || exit 1
failures=0

# Lines that no run is held to, each with its reason. None concerns memory.
# latency.*: what a call costs on the machine, not what it answers.
same_everywhere() { grep -v '^latency\.' "$1"; }

ok() { echo "ok $1"; }
not_ok() {
	echo "not ok $1"
	failures=$((failures + 1))
}

# compare NAME WANTED GOT: the files, section by section (the word before the first dot), in the order of WANTED.
compare() {
	same_everywhere "$2" >wanted.all
	same_everywhere "$3" >got.all
	local sections
	sections=$(cat wanted.all got.all | cut -d. -f1 | cut -d= -f1 | awk '!seen[$0]++')
	if [ ! -s wanted.all ] || [ ! -s got.all ]; then
		not_ok "$1 (no lines)"
		return
	fi
	for section in $sections; do
		grep "^${section}[.=]" wanted.all >wanted
		grep "^${section}[.=]" got.all >got
		if cmp -s wanted got; then
			ok "$1.$section"
		else
			not_ok "$1.$section"
			diff wanted got | grep '^[<>]' | head -n 10
		fi
	done
}

# recorded NAME COMMAND...: under tenure record, the program's output to NAME.recorded
recorded() {
	"$tenure" record -q -o "run.$1" -- "${@:2}" >"$1.recorded" 2>"$1.err"
	local rc=$?
	if [ "$rc" != "$(cat "$1.rc")" ]; then
		not_ok "$1 under record (exit code $rc, natively $(cat "$1.rc"))"
		head -n 5 "$1.err"
	fi
	# A record that saw nothing would prove nothing.
	if [ -z "$(find "run.$1" -type f -size +0 -print -quit)" ]; then
		not_ok "$1 under record (no journal)"
	fi
}

# both NAME GOLDEN COMMAND...: natively against the golden text, then under record against the native run
both() {
	"${@:3}" >"$1.native" 2>"$1.native.err"
	echo $? >"$1.rc"
	[ -s "$1.native.err" ] && cat "$1.native.err"
	compare "$1 as on a GPU" "$2" "$1.native"
	recorded "$1" "${@:3}"
	compare "$1 under record" "$1.native" "$1.recorded"
}

both facts "$golden/facts_h200.txt" "$facts" --kernels
both faults "$golden/faults_h200.txt" "$facts" --faults
both safe_calls "$golden/safe_calls_h200.txt" "$safe_calls"

echo "$failures comparisons failed"
[ "$failures" -eq 0 ]
