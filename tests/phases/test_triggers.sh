#!/bin/sh
# What moves a recorded run to its next phase: lines, ports, HTTP, the n-th call, quiet; and marks by lines.
own=$(pwd)/$2
# shellcheck source=tests/shim/lib.sh
. "$1"
# shellcheck source=tests/phases/lib.sh
. "$own"

# rec RUN OPTIONS... -- PROGRAM...: leaves RUN.out, RUN.err and rc
rec() {
    run=$1
    shift
    tenure record -o "$run" "$@" >"$run.out" 2>"$run.err" </dev/null
    rc=$?
}
# A time in which nothing asks CUDA for anything, so that a line is read before the next call.
pause=sleep:300

# ---- lines
rec line --planning-when 'line:^loaded' --serving-when 'line:^ready [0-9]+$' --mark-on '^(loaded|ready)' -- \
    prog_serve alloc:3 print:loaded $pause once 'print:ready x' 'print:ready 12' $pause loop:7
same line_phases "$rc:$(phases line):$(causes line)" '0:loading planning serving:none line line'
same line_marks "$(marks line)" 'loaded|ready x|ready 12'
same line_counts "$(serving line driver_allocations):$(serving line first_uses):$(serving line repeated)" 7:1:6
same line_output "$(cat line.out)$(cat line.err)" 'loaded
ready x
ready 12'
same a_mark_has_its_delta "$(json line '.marks[] | select(.mark == "ready x") | .devices[0].delta_backed_bytes')" 65536
rec stderr --serving-when 'line:on stderr' -- prog_serve alloc:1 'warn:on stderr' $pause loop:2
same lines_of_standard_error "$(phases stderr):$(cat stderr.out)$(cat stderr.err)" 'loading serving:on stderr'
rec swap --planning-when line:swap --serving-when line:ready -- \
    prog_serve alloc:1 print:ready $pause loop:2 print:swap $pause loop:50 print:ready $pause loop:3
same a_swap_by_lines "$(phases swap)" 'loading serving planning:1 serving:1'
same what_the_swap_took_is_not_counted "$(serving swap driver_allocations)" 5
rec partial --serving-when line:prompt -- prog_serve alloc:1 'raw:a prompt' $pause loop:2 print: $pause loop:4
same a_line_counts_when_it_ends "$(serving partial driver_allocations)" 4
rec early --serving-when line:ready --mark-on ready -- prog_serve print:ready $pause alloc:1 $pause loop:2
same before_the_first_call "$(phases early):$(serving early driver_allocations)" 'loading serving:3'
holds an_early_mark_is_lost "$(cat early.err)" '*1 mark was before the first CUDA call*'
rec never --serving-when line:ready -- prog_serve print:ready
holds no_call_after_it "$(cat never.err)" '*the trigger for serving came, but no process made a CUDA call after it*'
same without_a_trigger_nothing_is_known "$(rec none -- prog_serve alloc:1; serving none driver_allocations)" null

# ---- the n-th call
rec call --planning-when call:cudaMalloc:3 --serving-when call:cudaFree:2 -- prog_serve alloc:4 loop:5
same call_phases "$(phases call):$(causes call)" 'loading planning serving:none call call'
# Serving begins with the second free, so three rounds of the loop remain.
same call_counts "$(serving call driver_allocations)" 3
same call_begins_its_phase "$(json call '.phases[0].by_site[0].allocs, .phases[1].by_site[0].allocs' | paste -sd:)" 2:2
rec driver --serving-when call:cuMemAlloc:4 -- prog_serve alloc:6
same call_of_the_driver "$(serving driver driver_allocations)" 3
rec toolate --serving-when call:cudaMalloc:9 -- prog_serve alloc:6
same call_that_never_came "$(phases toolate)" loading

# ---- quiet
rec quiet --serving-when quiet:0.5 -- prog_serve alloc:2 sleep:200 alloc:1 sleep:1200 loop:4
same quiet_phases "$(phases quiet):$(causes quiet):$(serving quiet driver_allocations)" 'loading serving:none quiet:4'
at_least quiet_came_after_its_time "$(($(json quiet .phases[0].duration_ns) / 1000000))" 600
rec loud --serving-when quiet:0.5 -- prog_serve alloc:1 work:1500
same not_while_it_allocates "$(phases loud)" loading

# ---- ports and HTTP
port=$((20000 + $$ % 20000))
rec port --serving-when port:$port -- prog_serve alloc:2 $pause listen:$port $pause loop:5
same port_phases "$(phases port):$(causes port):$(serving port driver_allocations)" 'loading serving:none port:5'
rec http --serving-when http://127.0.0.1:$port/health -- prog_serve alloc:2 $pause listen:$port sleep:800 loop:5
same http_phases "$(phases http):$(causes http):$(serving http driver_allocations)" 'loading serving:none http:5'
LD_PRELOAD='' prog_serve listen:$port sleep:2500 &
other=$!
port_is_there() { grep -qi ":$(printf %04X $port) .* 0A " /proc/net/tcp; }
wait_for 10 port_is_there
rec taken --serving-when port:$port -- prog_serve alloc:2 sleep:400 loop:5
same a_port_that_listened_before "$(phases taken)" loading
kill $other
wait $other
rec refused --serving-when http:localhost:1/x -- prog_serve alloc:1 sleep:400 loop:5
same nobody_answers "$rc:$(phases refused)" 0:loading

# ---- the guard's warnings, once a site
rec warn --guard warn --serving-when call:cudaMalloc:2 -- prog_serve loop:30 once
same warned_sites "$(grep -c '^tenure: pid' warn.err)" 2
holds a_warning_says_who "$(head -n 1 warn.err)" 'tenure: pid [0-9]*: cudaMalloc of 4096 bytes while serving, by prog_serve+0x*'
same its_address_is_the_reports "$(json warn '[.sites[].frames[0].offset] | join(" ")' | tr ' ' '\n' | grep -c "$(sed -n 's/.*prog_serve+\(0x[0-9a-f]*\).*/\1/p' warn.err | head -n 1)\$")" 1
rec silent --guard count --serving-when call:cudaMalloc:2 -- prog_serve loop:30
same counting_is_silent "$(cat silent.err)" ''

# ---- wrong ones
for trigger in '' ready line: 'line:(' port: port:0 port:65536 port:x http: http:/x 'http:h:0/' https://h/ call: call:cudaMalloc call:cudaMalloc:0 \
    call:malloc:3 quiet: quiet:0 quiet:x; do
    tenure record -o wrong --serving-when "$trigger" -- prog_serve >out 2>err
    same "refused: $trigger" "$?:$(wc -l <err | tr -d ' '):$(cat out):$([ -e wrong ] && echo made)" 2:1::
done
tenure record -o wrong --guard refuse -- prog_serve 2>err
same refused_guard $? 2
tenure record -o wrong --mark-on 'a(' -- prog_serve 2>err
same refused_expression $? 2
tenure record -o wrong --serving-when line:a --serving-when line:b -- prog_serve 2>err
same two_are_one_too_many $? 2
finish
