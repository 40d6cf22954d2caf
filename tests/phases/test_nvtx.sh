#!/bin/sh
# NVTX marks and ranges in the record, and who they are left to.
own=$(pwd)/$2
# shellcheck source=tests/shim/lib.sh
. "$1"
# shellcheck source=tests/phases/lib.sh
. "$own"
lib=$LIB/libtenure_nvtx.so

same its_one_export "$(nm -D --defined-only "$lib" | awk '{ print $NF }')" InitializeInjectionNvtx2
empty no_glibc_version_above_2.17 "$(nm -D --undefined-only "$lib" | sed -n 's/.*@GLIBC_//p' | sort -u -V | awk -F. '$1 > 2 || ($1 == 2 && $2 > 17)')"
holds it_needs_libc_alone "$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | paste -sd' ')" 'libc.so.6 libdl.so.2'

levels='level 0
level 1
level 1
level 0
level -1
ids 1 1
thread level 0'
LD_LIBRARY_PATH=$DRIVER tenure record -q -o on --nvtx -- prog_nvtx >on.out 2>on.err
same levels_as_nvtx_has_them "$?:$(cat on.out)$(cat on.err)" "0:$levels"
same marks "$(marks on)" 'plain mark|wide ä mark|by attributes|engine: registered|in a host function'
same the_device_was_read "$(json on '[.marks[].devices[0].used_bytes | . > 500000000] | all')" true
same their_cause "$(json on '[.marks[].cause] | unique | join(" ")')" nvtx
same ranges "$(json on '[.ranges[] | "\(.range) \(.count) \(.allocs) \(.requested_bytes)"] | sort | join("|")')" \
    'before CUDA starts 1 1 100|by attributes 1 1 200|engine: registered 1 0 0|in a thread 1 1 300|other 1 0 0|outer 1 1 200|started 1 0 0'
same no_range_was_left_open "$(json on '[.ranges[].open] | add')" 0

# Numbered ranges, as a server makes them: no more names than are kept, and that is said.
tenure record -q -o many --nvtx -- prog_nvtx 65600 >many.out 2>many.err
same names_have_a_bound_and_that_is_said "$?:$(json many '"\([.ranges[].range | select(. != null)] | length) \([.coverage_notes[].text | select(test("more different texts"))] | length)"')" '0:65536 1'
recorded off off_run prog_nvtx
same without_the_option "$(marks off_run)" ''
# One that is there already stays, be it good or not.
NVTX_INJECTION64_PATH=/a/profilers/library tenure record -o other --nvtx -- prog_serve alloc:1 2>other.err
same another_injection_stays "$?:$(wc -l <other.err | tr -d ' ')" 0:1
holds and_that_is_said "$(cat other.err)" '*NVTX_INJECTION64_PATH is set to /a/profilers/library, which stays*'
# Without the shim in the process it declines, and NVTX stays off.
NVTX_INJECTION64_PATH=$lib native declined prog_nvtx
holds without_the_shim_it_declines "$rc:$(head -n 1 declined.out)" '0:level -*'
mkdir alone && cp "$LIB/libtenure.so" alone/
TENURE_LIB=$PWD/alone/libtenure.so tenure record -o none --nvtx -- prog_nvtx 2>none.err
same no_library_is_an_error "$?" 2
holds and_its_name_is_said "$(cat none.err)" '*libtenure_nvtx.so beside libtenure.so*'
finish
