#!/bin/sh
# tenure.h: in C and C++, with the shim and without it, before the first CUDA call and after.
own=$(pwd)/$2
# shellcheck source=tests/shim/lib.sh
. "$1"
# shellcheck source=tests/phases/lib.sh
. "$own"

absent='planning 1
planning again 1
back 1
none 1
mark 1
serving 1
errno 77
threads 4'
recorded='planning 0
planning again 0
back -1
none -1
mark 0
serving 0
errno 77
threads 4'
native without prog_tenure_h cuda
same without_the_shim "$rc:$(cat without.out)$(cat without.err)" "0:$absent"
recorded with with_run prog_tenure_h cuda
same with_the_shim "$rc:$(cat with.out)$(cat with.err)" "0:$recorded"
same nothing_is_said "$(cat with.tenure)" ''
same phases_by_the_program "$(phases with_run) $(causes with_run)" 'loading planning serving none api api'
same every_mark_is_there "$(json with_run '[.marks[] | select(.mark | startswith("thread"))] | length')" 800
same texts_are_right "$(json with_run '[.marks[].mark] | unique | length')" 11
preloaded inert '' prog_tenure_h cuda
same not_asked_to_record "$(cat inert.out)" "$absent"

# Before CUDA starts nothing is recorded, and a process that never starts it leaves no journal.
recorded never never_run prog_tenure_h
same never_started "$(cat never.out)" "$recorded"
has_journal never_run && not_ok no_journal 'there is one' || ok no_journal
recorded early early_run prog_serve mark:early phase:1 alloc:1 mark:late phase:2 loop:3
same early_answers "$(paste -sd' ' early.out)" 'mark 0 phase 0 mark 0 phase 0'
same early_phase_is_kept "$(phases early_run)" 'loading planning serving'
same early_mark_is_kept "$(marks early_run)" 'early|late'
same loop_is_counted "$(serving early_run driver_allocations) $(serving early_run first_uses)" '3 1'

# A forked child of a process that has started only forwards.
recorded child child_run prog_serve alloc:1 fork phase:2
same child_of_a_started_one "$(sort child.out | paste -sd' ')" 'phase 0 phase 1'

recorded cxx cxx_run prog_tenure_h_cc
same from_cxx "$rc:$(cat cxx.out)" '0:mark 0 phase 0'
native cxx_native prog_tenure_h_cc
same from_cxx_without "$rc:$(cat cxx_native.out)" '0:mark 1 phase 1'
finish
