#!/bin/bash
# The backends of tiers/ on a GPU: every invariant over plain, stream-ordered, growing and pinned memory, with each driver call let fail; the same
# under `tenure record`; and what memory that grows in place costs: one table with medians. STAGE and OUT as for run_stand.sh. Under two minutes on an idle machine.
# Prints "ok NAME" or "not ok NAME: why" per check and "N passed, M failed" last; exit code 1 if any failed.
set -u
export STAND_SECONDS=${STAND_SECONDS:-320}
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"
suite=$(built tiers_suite) || exit 2
vmm=$(built tiers_vmm) || exit 2
peers=$(built tiers_peers) || exit 2

# checks LABEL: the lines of OUT/LABEL.out count, and so does an end without them.
checks() {
	local line any=
	while IFS= read -r line; do
		case $line in
		"ok "*)
			any=1
			ok "$1: ${line#ok }"
			;;
		"not ok "*)
			any=1
			not_ok "$1" "${line#not ok }"
			;;
		"#"*) echo "$line" ;;
		"skip "*)
			any=1
			echo "$line"
			;;
		esac
	done <"$out/$1.out"
	if [ -z "$any" ]; then
		not_ok "$1" "it printed no check, and ended with $(cat "$out/$1.rc")"
		show_tail "$out/$1.err" 10
	elif [ "$(cat "$out/$1.rc")" -gt 1 ]; then
		not_ok "$1" "it ended with $(cat "$out/$1.rc")"
	fi
}

for backend in driver async vmm pinned; do
	run 60 "$backend" "$suite" "$backend"
	checks "$backend"
done
run 60 growth "$vmm"
checks growth
run 30 growth_2m "$vmm" 2 24576 20
checks growth_2m
run 30 peers "$peers"
checks peers

# What the allocators cost on that machine's processor, which has cores to spare for two threads. Where others keep it busy the first takes over a minute.
for bench in tiers_arena tiers_stream; do
	if ! program=$(built $bench) || ! run 120 $bench "$program"; then
		not_ok $bench "it did not end well"
		continue
	fi
	ok $bench
	sed -nE 's/.*"case":"([^"]*)".*"threads":([0-9]+).*"median":([0-9.]+),"p10":([0-9.]+),"p90":([0-9.]+).*/# \1, \2 thread(s): \3 ns (\4 to \5)/p' "$out/$bench.out"
done

rm -rf "$out/run.tiers"
run 90 recorded "$tool/tenure" record -o "$out/run.tiers" -- "$suite" driver vmm
checks recorded
if run 30 report "$tool/tenure" report "$out/run.tiers"; then ok report; else not_ok report "exit $(cat "$out/report.rc")"; fi
finish
