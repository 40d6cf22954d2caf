#!/bin/sh
# The built libtenure.so as a file: what it needs, which symbol versions, what it exports.
# shellcheck source=tests/shim/lib.sh
. "$1"
lib=$LIB/libtenure.so

dynamic=$(readelf -dW "$lib")
needed=$(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
holds needed_was_read "$needed" '*libc.so.6*'
empty needed_is_libc_libdl_libpthread_at_most "$(echo "$needed" | grep -vxE 'libc\.so\.6|libdl\.so\.2|libpthread\.so\.0')"
empty no_text_relocations "$(echo "$dynamic" | grep -E 'TEXTREL')"
empty no_rpath "$(echo "$dynamic" | grep -E 'RPATH|RUNPATH')"
same soname "$(echo "$dynamic" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" libtenure.so

undefined=$(nm -D --undefined-only "$lib" | awk '{ print $NF }')
holds undefined_was_read "$undefined" '*dlvsym@GLIBC*'
empty no_glibc_version_above_2.28 "$(echo "$undefined" | sed -n 's/.*@GLIBC_//p' | sort -u -V | awk -F. '$1 > 2 || ($1 == 2 && $2 > 28)')"
empty no_version_of_another_library "$(readelf -VW "$lib" | sed -n 's/.*Name: \([^ ]*\).*/\1/p' | grep -vE '^(GLIBC_|libtenure)')"
empty no_cuda_symbol_is_wanted "$(echo "$undefined" | grep -E '^(cu[A-Z]|cuda[A-Z]|nvml)')"
empty nothing_of_libunwind_is_wanted "$(echo "$undefined" | grep -E '^(unw_|_U|_Unwind)')"
# A thread with a cancellation pending would end inside a CUDA call that natively it comes back from.
empty no_cancellation_point_is_called "$(echo "$undefined" | sed 's/@.*//' | grep -xE 'accept|close|connect|fcntl|fsync|msync|(clock_)?nanosleep|open(at)?(64)?|pause|poll|pread(64)?|pselect|pwrite(64)?|read|readv|recv(from|msg)?|select|send(to|msg)?|sigsuspend|sigtimedwait|sigwait(info)?|sleep|usleep|wait|waitid|waitpid|write|writev|sem_(timed)?wait|pthread_(cond_(timed)?wait|join|testcancel)|printf|fprintf|fopen|fclose|syslog')"
empty thread_variables_need_no_allocation "$(echo "$undefined" | grep __tls_get_addr)"

nm -D --defined-only "$lib" | awk '$2 != "A" { print $NF }' | sed 's/@.*//' | LC_ALL=C sort >exported
{ "$BIN/api_names"; echo dlsym; echo dlclose; echo tenure_tiers_seam_v1; echo tenure_v1_mark; echo tenure_v1_phase; echo tenure_v1_range; } | LC_ALL=C sort >expected
at_least the_table_was_read "$(grep -c . expected)" 300
empty every_row_is_exported "$(LC_ALL=C comm -13 exported expected | head -n 5)"
empty nothing_else_is_exported "$(LC_ALL=C comm -23 exported expected | head -n 5)"
empty no_name_twice "$(uniq -d exported)"
empty no_unwinder_is_exported "$(grep -E '^(_Unwind|unw_|_U)' exported)"

# What a served pair and a launch run stands on a dozen pages (__attribute__((hot))): the program's own work between two calls leaves none of them in a
# cache, and a page more is a walk of the page tables more. Before, it was spread over 330 KiB.
hot=$(nm "$lib" | awk '$3 ~ /^(cudaMalloc(Async)?|cudaFree(Async)?|cuLaunchKernel|tn_short_(take|give)|tn_callsite|tn_journal_slot|tn_ledger_(insert_new|remove)|tn_marks_of_stream|tn_place_(take|give)|tn_work_set_add|tn_scratch_take|rec_work_again)$/ { print $1 }' | sort)
same hot_functions_were_found "$(echo "$hot" | grep -c .)" 17
at_least hot_functions_stand_together 65536 $((0x$(echo "$hot" | tail -n 1) - 0x$(echo "$hot" | head -n 1)))

# A preload that asked for an executable stack would make every program's stack executable.
same stack_is_not_executable "$(readelf -lW "$lib" | awk '$1 == "GNU_STACK" { print $7 }')" RW
finish
