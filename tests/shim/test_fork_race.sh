#!/bin/sh
# Forks while another thread is in the middle of the start: nobody hangs, and the thread that starts loses nothing. (The child may die of a
# half-loaded driver, with or without us, and the loader may say so; so this is not compared with a bare run.)
# shellcheck source=tests/shim/lib.sh
. "$1"

timeout -k 1 100 "$BIN/tenure" record -q -o run.race -- env LD_LIBRARY_PATH="$LIB" "$BIN/prog_fork" race 100 >race.out 2>race.err </dev/null
same forks_in_the_start_all_ended "$?:$(cat race.out)" '0:100 forks in the start, 0 bad'
at_least race_journals "$(total run.race journals)" 100
at_least race_allocations "$(total run.race allocs)" 500
same race_nothing_lost "$(total run.race dropped) $(total run.race damaged)" '0 0'

finish
