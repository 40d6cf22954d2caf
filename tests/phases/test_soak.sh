#!/bin/sh
# tenure soak: what holds, what falls short and where, and what it cannot say.
own=$(pwd)/$2
# shellcheck source=tests/shim/lib.sh
. "$1"
# shellcheck source=tests/phases/lib.sh
. "$own"

# soak RUN ARGUMENTS...: leaves RUN.out, RUN.err and rc
soak() {
    run=$1
    shift
    timeout 120 tenure soak -o "$run" "$@" >"$run.out" 2>"$run.err" </dev/null
    rc=$?
}
ready="--serving-when line:^ready"
pause=sleep:300

# ---- waiting for the program itself
# shellcheck disable=SC2086
{
    soak holds $ready -- prog_serve alloc:3 loop:1 print:ready $pause
    same holds "$rc" 0
    holds holds_says_so "$(cat holds.out)" '*Holds: 0 driver allocations while serving*run folder: */holds'
    soak steady $ready -- prog_serve alloc:3 print:ready $pause loop:20 once
    same falls_short "$rc" 1
    holds verdict "$(cat steady.out)" '*Falls short: 21 driver allocations while serving, 19 repeated and 2 first uses (0 retries, 0 refused)*'
    holds its_site_is_named "$(cat steady.out)" '*Sites that allocated again while serving*      19      1       0   80.0 KiB  *prog_serve.c:[0-9]* take*called by loop:[0-9]*, do_one:*Sites that allocated once, for the first time*called by do_one:*'
    soak first $ready -- prog_serve alloc:3 print:ready $pause once
    same a_first_use_alone_holds "$rc" 0
    holds but_is_listed "$(cat first.out)" '*Holds: 1 driver allocation while serving, 0 repeated and 1 first use *1 first use kept*'
    soak strict --strict $ready -- prog_serve alloc:3 print:ready $pause once
    same unless_strict "$rc" 1
    soak retry $ready -- prog_serve alloc:1 retry print:ready $pause retry retry
    holds a_refusal_and_its_retry_are_one "$(cat retry.out)" '*Falls short: 2 driver allocations while serving, 2 repeated and 0 first uses (2 retries, 2 refused)*'
    soak leak $ready -- prog_serve alloc:1 leak:2 print:ready $pause leak:5
    same a_leak "$rc" 1
    holds a_leak_is_named "$(cat leak.out)" '*5 blocks (40.0 KiB) more at the end than at the flip to serving*Sites that hold more at the end*'
    soak swap --planning-when line:swap $ready -- prog_serve alloc:1 loop:1 print:ready $pause print:swap $pause alloc:5 loop:9 print:ready $pause
    same after_a_swap_the_new_flip_counts "$rc" 0
}

# ---- requests by a command, until the program is told to end
cat >request.sh <<'REQUEST'
echo "request $1" >>requests
echo "output of a request"
tenure ctl served mark "request $1"
REQUEST
# shellcheck disable=SC2086
soak served $ready --requests-cmd 'sh request.sh $$' --requests 3 --drain 0.1 -- prog_serve alloc:2 loop:1 print:ready wait
same requests_are_sent "$rc:$(wc -l <requests | tr -d ' ')" 0:3
same their_marks_are_there "$(json served '[.marks[] | select(.mark | startswith("request"))] | length')" 3
same the_drain_is_marked "$(json served '.marks[-1] | "\(.mark) \(.cause)"')" 'soak: drained soak'
same their_output_is_no_verdict "$(grep -c 'output of a request' served.out):$(grep -c 'output of a request' served.err)" 0:3
same the_program_ended_well "$(json served '.run.exit_status')" 0
# shellcheck disable=SC2086
soak busy $ready --requests-cmd 'sleep 0.2' --duration 0.5 --drain 0.1 -- prog_serve alloc:2 loop:1 print:ready work:100000
same work_while_it_serves "$rc" 1
holds repetition "$(cat busy.out)" '*Falls short: * repeated and [01] first use*when the requests are done*'
# shellcheck disable=SC2086
soak served_only $ready --duration 0.3 --drain 0.1 -- prog_serve alloc:2 print:ready wait
same a_time_without_requests "$rc" 0
# shellcheck disable=SC2086
soak failing $ready --requests-cmd 'exit 3' --requests 2 --drain 0 -- prog_serve alloc:2 print:ready wait
holds failing_requests_are_said "$rc:$(cat failing.err)" "3:*2 of 2 runs of the requests' command failed*every run of the requests' command failed*"
holds where_none_succeeds_nothing_holds "$(cat failing.out)" "*Inconclusive: every run of the requests' command failed. Until then:*"
# shellcheck disable=SC2086
soak some_fail $ready --requests-cmd 'test -e second || { : >second; exit 3; }' --requests 2 --drain 0 -- prog_serve alloc:2 print:ready wait
holds one_that_succeeds_is_enough "$rc:$(cat some_fail.err)" "0:*1 of 2 runs of the requests' command failed*"
# shellcheck disable=SC2086
soak gone $ready --requests-cmd 'exec sleep 30' -- prog_serve alloc:2 print:ready sleep:300
holds it_ended_before_its_requests "$rc:$(cat gone.out)" '3:*Inconclusive: the program ended before the requests were done. Until then:*'
# shellcheck disable=SC2086
soak stubborn $ready --duration 0.1 --drain 0 --grace 0.3 -- sh -c 'trap "" TERM; exec prog_serve alloc:1 print:ready sleep:600000'
same one_that_does_not_end_is_killed "$rc" 0

# ---- told by others
soak told --duration 0.2 --drain 0 -- prog_serve alloc:1 phase:2 wait
same by_tenure_h "$rc" 0
soak by_ctl --duration 0.2 --drain 0 -- prog_serve alloc:1 work:100000 &
soaking=$!
wait_for 10 has_block by_ctl
tenure ctl by_ctl phase serving
wait $soaking
holds by_ctl "$(cat by_ctl.out)" 'Falls short*'
unset run
(cd "$WORK" && TMPDIR=$WORK timeout 60 tenure soak --duration 0.1 --drain 0 -- prog_serve alloc:1 phase:2 wait >own.out)
holds a_folder_of_its_own "$(cat own.out)" "*run folder: $WORK/tenure-soak-??????"

# ---- inconclusive
# shellcheck disable=SC2086
{
    soak unreached $ready -- prog_serve alloc:1
    same never_served "$rc:$(head -n 1 unreached.out)" '3:Inconclusive: no process came to serve.'
    soak late --phase-timeout 0.3 $ready -- prog_serve alloc:1 wait
    holds not_in_time "$rc:$(cat late.err)" '3:*did not come to serve within 0.3 s*'
    soak died $ready -- prog_serve alloc:1 print:ready $pause loop:2 kill:9
    holds it_died "$rc:$(cat died.err)" '3:*ended by signal 9*'
    holds no_verdict_stands_beside_it "$(cat died.out)" '*Inconclusive: the program was ended by signal 9. Until then:*'
    soak failed $ready -- prog_serve alloc:1 print:ready $pause loop:2 exit:5
    holds it_failed "$rc:$(cat failed.err)" '3:*ended with exit code 5*'
    TENURE_JOURNAL_MAX_MIB=1 soak dropped $ready -- prog_serve alloc:1 print:ready $pause loop:30000
    holds events_dropped "$rc:$(grep Inconclusive dropped.out)" '3:Inconclusive: the record is not complete*'
}

# ---- wrong arguments
for arguments in '' '-- ' '--requests 3 -- true' '--requests 0 --requests-cmd x -- true' '--duration x -- true' '--requests 1 --duration 1 --requests-cmd x -- true' \
    '--serving-when x -- true' '--top x -- true' '--jump -- true'; do
    # shellcheck disable=SC2086
    tenure soak -o wrong $arguments >out 2>err
    same "refused: $arguments" "$?:$(wc -l <err | tr -d ' '):$(cat out)" 2:1:
done
finish
