#!/bin/bash
# Phases and marks of PyTorch on a GPU: NVTX marks and ranges, a phase by a line of output, phases and a mark by tenure ctl while the
# program works and while it sleeps, and a soak. STAGE and OUT as for run_stand.sh. About a minute.
# Prints "ok NAME" or "not ok NAME: why" per check and "N passed, M failed" last; exit code 1 if any failed.
set -u
export STAND_SECONDS=${STAND_SECONDS:-90}
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"
program=$here/frameworks/torch_phases.py

# checks NAME REPORT: the lines of phases_check.py count
checks() {
	local line
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		"not ok "*)
			line=${line#not ok }
			not_ok "${line%%: *}" "${line#*: }"
			;;
		*) not_ok "$1" "$line" ;;
		esac
	done < <(python3 "$here/phases_check.py" "$1" "$2" 2>&1)
}

run 40 nvtx "$tool/tenure" record -o "$out/nvtx.run" --nvtx --serving-when 'line:^ready' -- python3 "$program" load print:ready sleep:300 serve:6
"$tool/tenure" report --json -o "$out/nvtx.json" "$out/nvtx.run"
checks nvtx "$out/nvtx.json"

"$tool/tenure" record -o "$out/ctl.run" -- python3 "$program" load serve:2 print:idle idle:3000 serve:4 >"$out/ctl.out" 2>"$out/ctl.err" </dev/null &
pid=$!
for _ in $(seq 400); do
	ls "$out"/ctl.run/*.tnc >/dev/null 2>&1 && break
	sleep 0.05
done
if "$tool/tenure" ctl -w 20 "$out/ctl.run" phase planning; then ok ctl.taken; else not_ok ctl.taken "$?"; fi
for _ in $(seq 400); do
	grep -q idle "$out/ctl.out" && break
	sleep 0.05
done
"$tool/tenure" ctl "$out/ctl.run" phase serving
"$tool/tenure" ctl "$out/ctl.run" mark "from outside"
wait "$pid"
"$tool/tenure" report --json -o "$out/ctl.json" "$out/ctl.run"
checks ctl "$out/ctl.json"

run 40 soak "$tool/tenure" soak -o "$out/soak.run" --serving-when 'line:^ready' -- python3 "$program" load serve:3 print:ready sleep:300 serve:4
code=$(cat "$out/soak.rc")
if [ "$code" = 1 ] && grep -q '^Falls short: .* repeated' "$out/soak.out"; then ok soak.falls_short; else not_ok soak.falls_short "exit $code"; fi
show_tail "$out/soak.out" 30
finish
