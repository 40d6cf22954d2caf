#!/bin/sh
# Programs that never start CUDA cannot tell that libtenure.so is there: no output, no file, the same answers from the loader.
# shellcheck source=tests/shim/lib.sh
. "$1"

# ---- nothing printed, nothing written
mkdir run
run_true() { # NAME RUN: /bin/true under the preload in an empty folder
    mkdir "empty.$1" && cd "empty.$1" || exit 1
    env -i LD_PRELOAD="$PRELOAD" ${2:+TENURE_RUN=$2} /bin/true >"../true.$1.out" 2>"../true.$1.err"
    same "true_exits_0_$1" $? 0
    cd ..
    empty "true_prints_nothing_$1" "$(cat "true.$1.out" "true.$1.err")"
    empty "true_writes_nothing_$1" "$(find "empty.$1" run -mindepth 1)"
}
run_true bare
run_true recording "$WORK/run"
empty no_cuda_library_is_on_this_path "$(env -i /sbin/ldconfig -p 2>/dev/null | grep -o 'libcuda\.so\.1.*')"
if command -v strace >/dev/null && strace -o probe /bin/true 2>/dev/null; then
    strace -f -o calls env LD_PRELOAD="$PRELOAD" TENURE_RUN="$WORK/run" /bin/true
    holds strace_saw_the_library "$(cat calls)" "*$PRELOAD*"
    sed -n '/execve(.*\/true/,$p' calls >true.calls
    empty true_makes_no_writing_call "$(grep -E 'write|O_WRONLY|O_RDWR|O_CREAT|mkdir|unlink|rename|socket|clone|fork' true.calls)"
    empty true_looks_for_no_cuda "$(grep -iE 'libcud|nvidia|libunwind' true.calls)"
else
    skip strace 'no strace, or it may not trace here'
fi
preloaded shell run sh -c 'true; (exit 3); echo $?'
same shells_too "$(cat shell.out shell.err)" 3
empty shells_write_nothing "$(ls -A run)"

# ---- what it costs
costs=$("$BIN/bench_start" "$PRELOAD" 200 /bin/true)
echo "start of /bin/true, microseconds: $costs"
cost=$(field "$costs" mean_cost)
if [ -n "$cost" ] && [ "$cost" -lt 3000 ]; then ok start_costs_below_3_ms; else not_ok start_costs_below_3_ms "$costs"; fi

# ---- look-ups
native look.native "$BIN/prog_probe" none "$LIB/libplug.so"
same the_probe_ran "$rc:$(grep -c NULL look.native.out | awk '{ print ($1 > 60) }')" 0:1
preloaded look.bare '' "$BIN/prog_probe" none "$LIB/libplug.so"
# The last line says whether libcuda can be opened: here it can, and is, but nothing is called.
same_output lookups_without_cuda look.native look.bare
preloaded look.record run "$BIN/prog_probe" none "$LIB/libplug.so"
same_output lookups_without_cuda_recording look.native look.record
LIB_BEFORE=$DRIVER DRIVER=
native look2.native "$BIN/prog_probe" none "$LIB/libplug.so"
preloaded look2.record run "$BIN/prog_probe" none "$LIB/libplug.so"
same_output lookups_on_a_machine_without_cuda look2.native look2.record
holds libcuda_was_missing_then "$(cat look2.native.out)" '*libcuda is not there*'
DRIVER=$LIB_BEFORE

native asks.native "$BIN/prog_probe" driver
same the_resolver_was_asked "$rc:$(grep -c '^r=0' asks.native.out | awk '{ print ($1 > 100) }')" 0:1
preloaded asks.bare '' "$BIN/prog_probe" driver
same_output resolver_answers asks.native asks.bare
preloaded asks.record run "$BIN/prog_probe" driver
same_output resolver_answers_recording asks.native asks.record
empty looking_up_leaves_no_journal "$(ls -A run)"

# A weak reference is bound by the loader to our export, which is documented: calling it says 3.
native weak.native "$BIN/prog_probe" weak
same weak_reference_natively "$(cat weak.native.out)" absent
preloaded weak.record run.weak "$BIN/prog_probe" weak
same weak_reference_under_us "$(cat weak.record.out weak.record.err):$rc" 'there, answers 3:0'

# A stand-in of a program's own, in a library with another name, keeps its calls.
native standin.native "$BIN/prog_standin"
same stand_in_natively "$(cat standin.native.out | tr '\n' ' ')" 'direct 4201 default 4201 next 4201 self 4201 '
preloaded standin.bare '' "$BIN/prog_standin"
same_output stand_in standin.native standin.bare
preloaded standin.record run.standin "$BIN/prog_standin"
same_output stand_in_recording standin.native standin.record

# ---- processes that the preload does not reach
mkdir run3
recorded static run3/a "$BIN/prog_static"
same static_program "$(cat static.out static.err):$rc:$(ls run3/a)" 'static program:0:run.json'
holds static_program_is_named "$(cat static.tenure)" '*static*'
recorded filtered run3/b env -i LD_LIBRARY_PATH="$LIB" "$BIN/prog_fork" alloc 3
same filtered_environment "$(cat filtered.out filtered.err):$rc:$(ls run3/b)" 'alloc 3: 0
errors 0:0:run.json'
cp /bin/true suid && chown nobody suid && chmod 4755 suid
preloaded suid run ./suid
same setuid_program "$(cat suid.out suid.err):$rc:$(ls -A run)" ':0:'
finish
