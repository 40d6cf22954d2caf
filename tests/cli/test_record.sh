#!/bin/sh
# tenure record is transparent: exit codes, signals, streams and environment of the program are its own.
# usage: test_record.sh CHECK_SH TENURE MAKE_EXAMPLE PROBE_SO STATIC_PROGRAM
here=$(pwd)
TENURE=$here/$2 EXAMPLE=$here/$3 PROBE=$here/$4 STATIC=$here/$5
# shellcheck source=tests/cli/check.sh
. "$here/$1"
cd "$WORK" || exit 1
export TENURE_LIB="$PROBE"
real_probe=$(realpath "$PROBE")
nothing_seen='tenure record: warning: no CUDA call was seen*'

# wait_for FILE: until it is there, ten seconds at most
wait_for() {
    tries=0
    while [ ! -e "$1" ] && [ $tries -lt 200 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

# ---- exit codes ----
for code in 0 1 2 3 77 255; do
    run "$TENURE" record -q -o "exit$code" -- sh -c "exit $code"
    same "exit_$code" "$rc:$out$err" "$code:"
done
for signal in 9 15 11 6; do
    run "$TENURE" record -q -o "kill$signal" -- sh -c "ulimit -c 0; kill -$signal \$\$"
    same "killed_by_$signal" "$rc" $((128 + signal))
done

# ---- streams ----
printf 'one\ntwo\n' | "$TENURE" record -q -o streams -- sh -c 'cat; echo error >&2' >got.out 2>got.err
same stdin_and_stdout "$(cat got.out)" "$(printf 'one\ntwo')"
same stderr_is_the_programs "$(cat got.err)" error
"$TENURE" record -q -o closed -- sh -c 'for i in 0 1 2; do [ -e /proc/$$/fd/$i ] && echo $i; done >closed.txt; exit 4' <&- >&- 2>&-
same closed_streams "$?:$(cat closed.txt | tr '\n' ' ')" '4:1 '
run "$TENURE" record -q -o fds -- sh -c 'ls /proc/self/fd | tr "\n" " "'
recorded=$out
run sh -c 'ls /proc/self/fd | tr "\n" " "'
same no_descriptor_leaks "$recorded" "$out"

# ---- environment ----
run env TENURE_PLAN=x "$TENURE" record -q -o env -- sh -c 'echo "$LD_PRELOAD|$TENURE_RUN|${TENURE_PLAN-unset}"'
same environment "$out" "$real_probe|$(realpath env)|unset"
run env LD_PRELOAD=libc.so.6 "$TENURE" record -q -o prepended -- sh -c 'echo "$LD_PRELOAD"'
same preload_is_prepended "$out" "$real_probe:libc.so.6"
run env ASAN_OPTIONS=a=1 "$TENURE" record -q -o sanitizer -- sh -c 'echo "$ASAN_OPTIONS"'
same sanitizers_options_are_kept "$out" a=1:verify_asan_link_order=0
run "$TENURE" record -q -o loaded -- cat /proc/self/maps
holds library_is_loaded "$out" "*$(basename "$real_probe")*"
run "$TENURE" record -q -o a/b/c -- true
same parents_are_made "$rc:$(ls a/b/c)" 0:run.json
mkdir before
run "$TENURE" record -q -o before -- true
same empty_folder_is_taken "$rc:$(ls -A before)" 0:run.json
run "$TENURE" record -q -o args -- printf '%s.' a 'b c' --json -o
same arguments_are_the_programs "$out" 'a.b c.--json.-o.'
run "$TENURE" record -q -o noseparator printf '%s' x
same separator_may_be_missing "$out" x
mkdir beside && cp "$TENURE" beside/tenure && cp "$PROBE" beside/libtenure.so
run env -u TENURE_LIB beside/tenure record -q -o beside.run -- sh -c 'echo "$LD_PRELOAD"'
same library_beside_the_command "$out" "$(realpath beside)/libtenure.so"
mkdir -p root/bin root/lib && cp "$TENURE" root/bin/tenure && cp "$PROBE" root/lib/libtenure.so
run env -u TENURE_LIB root/bin/tenure record -q -o lib.run -- sh -c 'echo "$LD_PRELOAD"'
same library_in_lib "$out" "$(realpath root)/lib/libtenure.so"

# ---- signals ----
cat >loop.sh <<'LOOP'
trap 'echo TERM >>$1.got' TERM
trap 'echo INT >>$1.got' INT
: >$1.ready
n=0
while [ $n -lt 100 ] && [ ! -e $1.got ]; do sleep 0.05; n=$((n + 1)); done
n=0
while [ $n -lt 6 ]; do sleep 0.05; n=$((n + 1)); done
exit 9
LOOP
"$TENURE" record -q -o sig1 -- sh loop.sh sig1f &
pid=$!
wait_for sig1f.ready
kill -TERM $pid
wait $pid
same term_reaches_it_once "$?:$(cat sig1f.got)" 9:TERM
"$TENURE" record -q -o sig2 -- sh -c ': >sig2.ready; exec sleep 30' &
pid=$!
wait_for sig2.ready
kill -TERM $pid
wait $pid
same term_ends_it "$?" 143
# Every signal that somebody may send on purpose; a supervisor knows only our process id.
cat >each.py <<'EACH'
import os, signal, sys
asked = [getattr(signal, "SIG" + n) for n in sys.argv[2:]] + [signal.SIGRTMIN, signal.SIGRTMIN + 7, signal.SIGRTMAX]
if sys.argv[1] == "get":
    signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    open("each.ready", "w").close()
    got = set()
    while len(got) < len(asked):
        info = signal.sigtimedwait(asked, 5)
        if info is None:
            break
        got.add(info.si_signo)
    print(len(got), len(asked))
else:
    for s in asked:
        os.kill(int(os.environ["TO"]), s)
EACH
"$TENURE" record -q -o each -- python3 each.py get HUP USR1 ALRM VTALRM PROF WINCH TTIN TTOU URG IO PWR >each.out &
pid=$!
wait_for each.ready
TO=$pid python3 each.py send HUP USR1 ALRM VTALRM PROF WINCH TTIN TTOU URG IO PWR
wait $pid
same every_signal_is_passed_on "$?:$(cat each.out)" '0:14 14'
# A timer set by who started us, as perl's alarm and exec: the program natively keeps it.
run python3 -c 'import os, signal, sys; signal.alarm(1); os.execvp(sys.argv[1], sys.argv[1:])' "$TENURE" record -q -o alarm -- sh -c 'echo $$ >alarm.pid; exec sleep 20'
same a_callers_alarm_ends_it "$rc:$(kill -0 "$(cat alarm.pid)" 2>/dev/null && echo alive)" 142:
run sh -c 'trap "" INT; exec "$@"' sh "$TENURE" record -q -o sig3 -- sh -c 'kill -INT $$; echo alive'
same ignored_stays_ignored "$out" alive
run sh -c 'trap "" CHLD; exec "$@"' sh "$TENURE" record -q -o sig4 -- sh -c 'exit 6'
same ignored_child_signal "$rc" 6
if command -v script >/dev/null; then
    # ^C at a terminal goes to the whole foreground group; the program must not get it a second time from us.
    (wait_for ttyf.ready; printf '\003'; sleep 1) |
        timeout 20 script -qec "'$TENURE' record -q -o tty -- sh loop.sh ttyf" /dev/null >/dev/null
    same terminal_interrupt_once "$(cat ttyf.got)" INT
else
    echo "# no script(1) here: the terminal's interrupt was not tried"
fi

# ---- run.json ----
run sh -c 'umask 0; exec "$@"' sh "$TENURE" record -q -o mode -- sh -c 'stat -c %a "$TENURE_RUN/run.json"'
same run_file_is_the_users_own "$out:$(stat -c %a mode/run.json)" 600:600
run "$TENURE" record -q -o desc -- sh -c 'exit 5'
json=$(tr -d ' \n' <desc/run.json)
holds run_file_has_the_command "$json" '*"command":\["sh","-c","exit5"\]*'
holds run_file_has_the_status "$json" '*"exit_status":5,"signal":null*'
holds run_file_has_the_end "$json" '*"end_ns":[1-9]*'
run "$TENURE" record -q -o desc2 -- sh -c 'cat "$TENURE_RUN/run.json"; kill -9 $$'
holds run_file_is_there_at_the_start "$(echo "$out" | tr -d ' \n')" '*"end_ns":null,"exit_status":null,"signal":null*'
holds run_file_has_the_signal "$(tr -d ' \n' <desc2/run.json)" '*"exit_status":null,"signal":9*'
same no_temporary_file_stays "$(ls -A desc2)" run.json

# ---- what went wrong, one line each ----
run "$TENURE" record -o quiet1 -- true
holds no_cuda_is_said "$err" "$nothing_seen"
same no_cuda_is_one_line "$(wc -l <.err)" 1
"$EXAMPLE" good.tnj
run "$TENURE" record -o good -- sh -c 'cp good.tnj "$TENURE_RUN/"'
same nothing_wrong_nothing_said "$rc:$out$err" 0:
run "$TENURE" report good
same recorded_run_is_reported "$rc:$err" 0:
holds report_has_the_command "$out" "*command    sh -c 'cp good.tnj \"\$TENURE_RUN/\"'*exit status 0*"
# Header bytes 24 (flags), 28 (stop_error), 32 (dropped_events) after ledger/journal_format.h.
patch() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null; }
cp good.tnj drop.tnj && chmod 644 drop.tnj && patch drop.tnj 32 '\007'
run "$TENURE" record -o drop -- sh -c 'cp drop.tnj "$TENURE_RUN/"; exit 3'
same drops_keep_the_exit_code "$rc" 3
same drops_are_one_line "$(wc -l <.err)" 1
holds drops_are_said "$err" '*7 events were dropped in 1 of 1 journals*'
cp good.tnj stop.tnj && chmod 644 stop.tnj && patch stop.tnj 24 '\020' && patch stop.tnj 28 '\006'
run "$TENURE" report --json drop
same drops_keep_the_reports_code "$rc" 0
holds drops_make_it_incomplete "$(echo "$out" | tr -d ' \n')" '*"complete":false*"dropped_events":7,*'
run "$TENURE" record -o stop -- sh -c 'cp stop.tnj "$TENURE_RUN/"'
holds stop_is_said "$err" '*recording stopped before the end in 1 of 1 journals*'
run "$TENURE" record -q -o drop2 -- sh -c 'cp drop.tnj "$TENURE_RUN/"; exit 3'
same quiet "$rc:$err" 3:
run "$TENURE" record -o gone -- sh -c 'rm -r "$TENURE_RUN"; exit 8'
same removed_folder_keeps_the_exit_code "$rc:$(wc -l <.err | tr -d ' ')" 8:1
holds removed_folder_is_said "$err" '*gone was removed while the program ran*'
[ -e gone ] && not_ok removed_folder_stays_removed 'it is back' || ok removed_folder_stays_removed

# ---- programs that a preload cannot reach ----
run "$TENURE" record -o static -- "$STATIC"
same static_runs "$rc" 21
holds static_is_said "$err" '*warning: * is statically linked*'
same static_is_one_line "$(wc -l <.err)" 1
printf '#!%s\n' "$STATIC" >script
chmod 755 script
run "$TENURE" record -o static2 -- ./script
same static_interpreter_is_said "$rc:$(grep -c 'is statically linked' .err)" 21:1
run "$TENURE" record -q -o static3 -- "$STATIC"
same static_quiet "$rc:$err" 21:

# ---- help ----
run "$TENURE" --help
same help "$rc:$err" 0:
holds help_names_the_commands "$out" '*tenure record*tenure report*'
for command in record report; do
    run "$TENURE" help $command
    holds "help_$command" "$rc:$out" "0:tenure $command *"
    run "$TENURE" $command --help
    holds "help_option_$command" "$rc:$out" "0:tenure $command *"
done
run "$TENURE" --version
holds version "$rc:$out" '0:tenure [0-9]*.[0-9]*.[0-9]*'
finish
