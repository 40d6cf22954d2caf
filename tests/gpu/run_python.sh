#!/bin/bash
# Python callers on a GPU, with the interpreter and the PyTorch that are there: two functions that call torch.empty and two that call torch.mm are
# different sites under the names that a traceback gives, and a second recording has the same keys, all of them. Random chains of calls
# too, each compared with what the interpreter shows, where the extension module for that (probe.c) can be compiled here or stands compiled
# beside this script. STAGE and OUT as for run_stand.sh. A minute.
set -u
export STAND_SECONDS=${STAND_SECONDS:-100}
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"

program=$here/frameworks/torch_callers.py
chains=$(built chains) || exit 2
path=${LD_LIBRARY_PATH:-}
python3 -VV | sed 's/^/# /'

for i in 1 2; do
	LD_LIBRARY_PATH=$path run 60 "callers_$i" "$tool/tenure" record -q -o "$out/callers_run_$i" -- python3 "$program"
	code=$?
	if [ "$code" = 0 ]; then
		ok "callers_recorded_$i"
	else
		not_ok "callers_recorded_$i" "exit $code"
		show_tail "$out/callers_$i.err"
	fi
	"$tool/tenure" report --json "$out/callers_run_$i" >"$out/callers_$i.json"
done

python3 "$here/python_check.py" callers "$out/callers_1.json" "$out/callers_2.json" "$out/callers_1.out" >"$out/callers.checks"
sed -n 's/^# /# /p' "$out/callers.checks"
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) not_ok "${line#not ok }" "see above" ;;
	esac
done <"$out/callers.checks"

probe=$out/probe
mkdir -p "$probe"
include=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
if ! run 30 probe gcc -O2 -shared -fPIC "-I$include" "$here/probe.c" -o "$probe/probe.so" "-L${cudart_dir:-/}" -l:libcudart.so.13; then
	cp "$here/probe.so" "$probe/" 2>/dev/null || echo "# no headers of Python here and no probe.so: random chains not run"
fi
if [ -f "$probe/probe.so" ]; then
	LD_LIBRARY_PATH=$toolkit_path run 60 random env PYTHONPATH="$probe" "$tool/tenure" record -q -o "$out/random_run" -- python3 "$here/random_calls.py" 20000 3 11 "$out/random.expected"
	"$chains" "$out/random_run" | sort -n >"$out/random.got"
	sort -n "$out/random.expected" >"$out/random.wanted"
	lines=$(wc -l <"$out/random.wanted")
	if [ "$lines" -ge 20000 ] && cmp -s "$out/random.got" "$out/random.wanted"; then
		ok "random_chains_$lines"
	else
		not_ok random_chains "$(diff "$out/random.wanted" "$out/random.got" | grep -c '^[<>]') lines of $lines differ"
	fi
fi

# What the Python part costs where every tensor is a call of the driver.
export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
LD_LIBRARY_PATH=$path run 40 time_bare python3 "$program" --time 20000
LD_LIBRARY_PATH=$path run 40 time_native env TENURE_PYTHON=0 "$tool/tenure" record -q -o "$out/time_native_run" -- python3 "$program" --time 20000
LD_LIBRARY_PATH=$path run 40 time_python "$tool/tenure" record -q -o "$out/time_python_run" -- python3 "$program" --time 20000
echo "# ns a tensor: bare $(cat "$out/time_bare.out"), recorded without Python callers $(cat "$out/time_native.out"), with $(cat "$out/time_python.out")"

finish
