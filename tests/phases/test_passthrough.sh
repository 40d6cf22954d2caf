#!/bin/sh
# The program's output on its way through the command: every byte, in order, to pipes, files and terminals, and nobody waits for ever.
own=$(pwd)/$2
# shellcheck source=tests/shim/lib.sh
. "$1"
# shellcheck source=tests/phases/lib.sh
. "$own"

pass() { tenure record -q -o "$@"; }

head -c 3000000 /dev/urandom >random
pass bytes --mark-on x -- cat random >bytes.out
same three_megabytes "$(cksum <bytes.out)" "$(cksum <random)"
printf 'a\0b\r\n\n\rno newline' >odd
pass odd_run --mark-on x -- cat odd >odd.out
same odd_bytes "$(cksum <odd.out)" "$(cksum <odd)"
pass streams --mark-on x -- sh -c 'echo out; echo err >&2; exit 7' >streams.out 2>streams.err
same two_streams "$?:$(cat streams.out):$(cat streams.err)" 7:out:err
pass killed --mark-on x -- sh -c 'echo before; kill -9 $$' >killed.out
same killed_by_a_signal "$?:$(cat killed.out)" 137:before
# Both to one file: what was written first stands first.
cat >mixed.sh <<'MIXED'
n=0
while [ $n -lt 300 ]; do
    echo "out $n"
    echo "err $n" >&2
    n=$((n + 1))
done
MIXED
sh mixed.sh >mixed.wanted 2>&1
pass mixed --mark-on x -- sh mixed.sh >mixed.out 2>&1
same one_file_for_both "$(cksum <mixed.out)" "$(cksum <mixed.wanted)"
pass closed --mark-on x -- sh -c 'for i in 1 2; do [ -e /proc/$$/fd/$i ] && echo $i >>closed.txt; done; exit 4' >&- 2>&-
same closed_streams_stay_closed "$?:$(cat closed.txt 2>/dev/null)" 4:
pass fds --mark-on x -- sh -c 'ls /proc/self/fd | tr "\n" " "' >fds.out
same no_descriptor_leaks "$(cat fds.out)" "$(ls /proc/self/fd | tr '\n' ' ')"

# A reader that goes: the program finds that out, and ends of it as it would have natively.
timeout 20 sh -c 'tenure record -q -o gone --mark-on x -- sh -c "while :; do echo line; done; exit 5"; echo $? >gone.rc' | head -n 1 >gone.out
wait_for 10 test -s gone.rc
same a_reader_that_goes "$(cat gone.out):$(cat gone.rc)" line:141
# One that reads nothing for a while holds up neither standard error nor the end.
(timeout 20 tenure record -q -o slow --mark-on x -- sh -c 'echo quick >&2; head -c 500000 /dev/zero; echo end >&2' 2>slow.err; echo $? >slow.rc) | (
    wait_for 5 grep -q quick slow.err && cp slow.err slow.early
    cat >slow.out
)
same standard_error_does_not_wait "$(cat slow.early)" quick
same all_comes_through "$(wc -c <slow.out | tr -d ' '):$(cat slow.rc):$(tail -n 1 slow.err)" 500000:0:end
# A child of the program that goes on writing does not hold up the exit code, and its output is not lost.
start=$(date +%s)
pass behind --mark-on x -- sh -c '(sleep 2; echo late) & echo first; exit 3' >behind.out
same the_exit_code_does_not_wait "$?:$(cat behind.out)" 3:first
[ $(($(date +%s) - start)) -le 1 ] && ok it_came_at_once || not_ok it_came_at_once 'it waited for the child'
wait_for 10 grep -q late behind.out
same a_late_child_is_heard "$(cat behind.out | paste -sd' ')" 'first late'

# Signals still reach the program.
tenure record -q -o signal --mark-on x -- sh -c 'trap "echo got; exit 9" TERM; echo ready; while :; do sleep 0.05; done' >signal.out &
pid=$!
wait_for 10 grep -q ready signal.out
kill -TERM $pid
wait $pid
same a_signal_arrives "$?:$(paste -sd' ' signal.out)" '9:ready got'

# ---- terminals
same a_pipe_stays_none "$(pass pipe --mark-on x -- sh -c '[ -t 1 ] && echo tty || echo none')" none
same a_terminal_if_asked_for "$(pass pty --pty -- sh -c '[ -t 1 ] && echo tty || echo none')" tty
same its_bytes_are_untouched "$(pass raw --pty -- printf 'a\nb\tc\r\n' | od -An -c | tr -s ' ')" "$(printf 'a\nb\tc\r\n' | od -An -c | tr -s ' ')"
if command -v script >/dev/null; then
    cat >tty.sh <<'TTY'
[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo "all terminals"
stty size <&1
TTY
    timeout 20 script -qec "stty rows 33 cols 77; tenure record -q -o tty --mark-on x -- sh tty.sh; echo code \$?" /dev/null </dev/null >tty.out
    same a_terminal_stays_one "$(tr -d '\r' <tty.out | paste -sd'|')" 'all terminals|33 77|code 0'
else
    skip a_terminal_stays_one "no script(1) here"
fi
# A program that prints line by line to a terminal only, as most do.
cat >buffered.awk <<'AWK'
BEGIN { print "ready"; system("sleep 0.5"); print "end" }
AWK
pass buffered --pty --mark-on . -- awk -f buffered.awk >buffered.out
same line_by_line "$(paste -sd' ' buffered.out)" 'ready end'
finish
