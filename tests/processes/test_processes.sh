#!/bin/bash
# A plan in programs of several devices, processes, workers and per-thread default streams: recorded, planned and run, each prints what it prints bare,
# every request finds a row and no tier runs out; who is not named acquires nothing.
# usage: test_processes.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO DEVICES FAMILY OTHER THREADS THREADS_LINKED WORKERS_PY
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export TENURE_LIB LD_LIBRARY_PATH FAKEGPU_DEVICES=2
devices=$(readlink -f "$5") family=$(readlink -f "$6") other=$(readlink -f "$7") threads=$(readlink -f "$8") threads_linked=$(readlink -f "$9") workers=$(readlink -f "${10}")
cd "$WORK" || exit 1

how=() # of record and run: --linked
rules=() # of plan
# plan NAME COMMAND...: NAME.bare, and NAME.json, a plan of its own record, which printed the same
plan() {
    local name=$1
    shift
    "$@" >"$name.bare" 2>"$name.bare.err" </dev/null
    same "${name}_runs_bare" $? 0
    run "$TENURE" record -q "${how[@]}" -o "$name.rec" -- "$@"
    same "${name}_recorded_as_bare" "$rc:$out" "0:$(cat "$name.bare")"
    run "$TENURE" plan --quiet "${rules[@]}" "$name.rec" -o "$name.json"
    same "${name}_is_planned" "$rc:$err" 0:
}

# serve NAME COMMAND...: by NAME.json, into NAME.run
serve() {
    local name=$1 routes
    shift
    run "$TENURE" run -q "${how[@]}" --plan "$name.json" -o "$name.run" -- "$@"
    same "${name}_served_as_bare" "$rc:$out" "0:$(cat "$name.bare")"
    run "$TENURE" report --json "$name.run"
    routes=$(echo "$out" | jq -c '.routing | [.served_calls > 0, .unplanned_calls, .spilled_calls]')
    same "${name}_is_all_planned" "$routes" '[true,0,0]'
}

# each RUN FILTER: of every process that used CUDA, in the order of their starts, what FILTER makes of its own report; one a line
each() {
    local journal
    for journal in "$1"/*.tnj; do "$TENURE" report --json "$journal" | jq -c "[.processes[0].pid, ($2)]"; done | sort -n | jq -c '.[1]'
}
count() { each "$1" "$2" | sort | uniq -c | awk '{print $1 "x" $2}' | paste -sd' '; }
served='.routing.served_calls'
arenas='[.devices[] | [.ordinal, [.tiers // {} | .[] | .held_bytes? // .] != [] and ([.tiers[] | .held_bytes? // .] | add) > 0]]'

plan two "$devices" calm
serve two "$devices" calm
same arenas_on_both_devices "$(each two.run "$arenas")" '[[0,true],[1,true]]'
run "$TENURE" run -q --plan two.json -o peer.run -- "$devices"
same what_a_peer_still_writes_is_nobody_elses "$rc:$out" "0:$(cat two.bare)"

# The second device has a context there, and no section asks for more.
plan stray "$devices" stray
serve stray "$devices" stray
same nothing_on_a_device_that_only_has_a_context "$(each stray.run "$arenas")" '[[0,true],[1,false]]'

# The plan knows no first device: the second one's default pool answers all the same, and set again it is no pool of the program's own.
plan second "$devices" second
serve second "$devices" second

# Blocks where others were whose frees nobody saw: theirs are the only ones that are there.
echo 'native symbol=left_to_the_driver' >unseen.rules
rules=(--rules unseen.rules)
plan unseen "$devices" unseen
serve unseen "$devices" unseen
rules=()

# Seven processes of two executables: each with all of its requests from arenas of its own.
plan family "$family" family "$other"
serve family "$family" family "$other"
same each_process_has_arenas "$(count family.run "$arenas")" '7x[[0,true]]'
same each_process_is_served "$(count family.run "$served")" '7x48'
same two_executables_are_two_sections "$(jq -c '[.sections[].build_id] | unique | length' family.json)" 2

plan after "$family" forked_after
serve after "$family" forked_after
same a_child_of_a_started_process_gets_what_it_gets_bare "$(grep -c '^child\.malloc=3,null\|^child\.malloc=3,kept' after.bare)" 1
same the_parent_and_what_the_child_executes_are_served "$(count after.run "$served")" '1x48 1x96'

# A helper that no section names, and one of a named executable that allocates nothing: no arena, although both use CUDA.
plan helper "$family" helper "$other"
jq --arg exe "${family##*/}" '.sections |= map(select(.executable == $exe))' helper.json >named.json && mv named.json helper.json
serve helper "$family" helper "$other"
same helpers_acquire_nothing "$(each helper.run "$arenas" | paste -sd' ')" '[[0,true]] [[0,false]] [[0,false]]'

# Without a barrier between threads but clean blocks: the runtime's and the driver's per-thread variants.
plan threads "$threads"
serve threads "$threads"
same the_threads_variants_were_called "$("$TENURE" report --json threads.run | jq -c '[.coverage[] | select(.api == "cuMemAllocAsync_ptsz" or .api == "cudaMallocAsync_ptsz") | .calls > 0]')" '[true,true]'

how=(--linked)
plan linked "$threads_linked"
serve linked "$threads_linked"
how=()

# An interpreter's section is its script's; workers of multiprocessing that are spawned run a command string.
python=$(command -v python3)
if [ -n "$python" ]; then
    export PYTHONDONTWRITEBYTECODE=1
    plan python "$python" "$workers"
    serve python "$python" "$workers"
    same each_worker_is_served "$(count python.run "$served")" '8x30'
    # Another script of the same interpreter is nobody's.
    cp python.json script.json
    "$python" "$workers" "${workers%/*}/other.py" >script.bare
    run "$TENURE" run -q --plan script.json -o script.run -- "$python" "$workers" "${workers%/*}/other.py"
    same script_served_as_bare "$rc:$out" "0:$(cat script.bare)"
    same another_script_acquires_nothing "$(each script.run "$arenas" | sort | uniq -c | awk '{print $1 "x" $2}' | paste -sd' ')" '1x[[0,false]] 8x[[0,true]]'
    # Planned, and then where there is a runtime and no driver: each call has the runtime's own answer.
    cat >calls.py <<'END'
import ctypes
cudart, block = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
for turn in range(4):
    refused = cudart.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4096))
    print(refused, refused or cudart.cudaFree(block))
END
    plan calls "$python" calls.py
    serve calls "$python" calls.py
    mkdir runtime
    cp -L "$LD_LIBRARY_PATH/libcudart.so.13" runtime
    LD_LIBRARY_PATH=$PWD/runtime "$python" calls.py >alone.bare 2>&1
    holds the_runtime_alone_refuses "$(head -n 1 alone.bare)" '35 35'
    mkdir alone.run
    out=$(LD_LIBRARY_PATH=$PWD/runtime LD_PRELOAD=$TENURE_LIB TENURE_PLAN=calls.json TENURE_RUN=alone.run "$python" calls.py 2>&1)
    same planned_and_without_a_driver_as_bare "$?:$out" "0:$(cat alone.bare)"
else
    echo "skipped: there is no python3 here"
fi
finish
