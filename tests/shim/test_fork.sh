#!/bin/sh
# fork, exec and exit in every order around the start of CUDA, and many processes in one run folder.
# shellcheck source=tests/shim/lib.sh
. "$1"
export FAKEGPU_STATS=

# check MODE N JOURNALS ALLOCS ENDED: natively and recorded the same output; so many journals, allocations in them, orderly ends
check() {
    native "$1.native" "$BIN/prog_fork" "$1" "$2"
    same "$1_natively" "$rc" 0
    timeout -k 1 60 "$BIN/tenure" record -q -o "run.$1" -- env LD_LIBRARY_PATH="$LIB" "$BIN/prog_fork" "$1" "$2" >"$1.record.out" 2>"$1.record.err" </dev/null
    echo $? >"$1.record.rc"
    same_output "$1_output" "$1.native" "$1.record"
    sum=$(totals "run.$1")
    same "$1_journals" "$(field "$sum" journals) of which ended $(field "$sum" ended)" "$3 of which ended $5"
    same "$1_allocations" "$(field "$sum" allocs)" "$4"
    same "$1_nothing_lost" "$(field "$sum" dropped) $(field "$sum" dropped_records) $(field "$sum" damaged) $(field "$sum" no_site)" '0 0 0 0'
    "$BIN/tenure" report "run.$1" >"report.$1" 2>&1
    same "$1_report" $? 0
}

# N allocations each: the child before CUDA and its parent both record; one forked later only forwards.
check before 10 2 $((10 + 12 + 10)) 2
check after 10 1 20 1
check nested 10 1 10 1
check thread 10 2 20 2
check programs 10 4 50 4
check exec 10 1 10 1
check exits 10 1 11 1
# A child that leaves by _exit has everything in its journal but the orderly end.
check leave 10 1 10 0
holds forked_children_are_told_what_the_driver_says "$(cat after.native.out)" '*child: 5[0-9]*'

# Forks beside a thread that allocates. How much it allocated is its own to say, on standard error.
native busy.native "$BIN/prog_fork" busy 40
timeout -k 1 100 "$BIN/tenure" record -q -o run.busy -- env LD_LIBRARY_PATH="$LIB" "$BIN/prog_fork" busy 40 >busy.record.out 2>busy.record.err </dev/null
echo $? >busy.record.rc
allocations=$(sed -n 's/^allocations=//p' busy.record.err)
: >busy.native.err
: >busy.record.err
same_output forks_beside_a_busy_thread busy.native busy.record
same busy_journal "$(total run.busy journals) $(total run.busy allocs) $(total run.busy dropped) $(total run.busy damaged)" "1 $allocations 0 0"

# Workers that load libraries, forked beside a thread whose every allocation comes from a stack that nobody has looked up before.
native loads.native "$BIN/prog_fork" loads 100
timeout -k 1 100 "$BIN/tenure" record -q -o run.loads -- env LD_LIBRARY_PATH="$LIB" "$BIN/prog_fork" loads 100 >loads.record.out 2>loads.record.err </dev/null
echo $? >loads.record.rc
same_output workers_that_load_libraries loads.native loads.record
holds workers_that_load_libraries_all_did "$(cat loads.native.out)" '*100 workers, 0 bad*'
at_least loads_looked_stacks_up "$(total run.loads sites)" 1000

# ---- 200 processes at once
mkdir many
i=0
while [ $i -lt 200 ]; do
    LD_LIBRARY_PATH=$LIB LD_PRELOAD=$PRELOAD TENURE_RUN=$WORK/many "$BIN/prog_fork" alloc $((i % 7 + 1)) >>many.out 2>&1 &
    wanted=$((wanted + i % 7 + 1))
    i=$((i + 1))
done
wait
same many_outputs "$(grep -c '^errors 0$' many.out)" 200
same many_journals "$(total many journals) $(total many ended) $(total many dropped) $(total many damaged)" '200 200 0 0'
same many_pids "$("$BIN/journal_info" many | sed -n 's/^journal pid=\([0-9]*\).*/\1/p' | sort -u | grep -c .)" 200
same many_allocations "$(total many allocs)" $wanted
"$BIN/tenure" report --json many >many.json
same many_report $? 0
same many_reported_processes "$("$BIN/report_value" many.json processes '#')" 200
same many_reported_allocations "$("$BIN/report_value" many.json sites '+allocs')" $wanted
finish
