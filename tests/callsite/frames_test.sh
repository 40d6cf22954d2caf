#!/bin/sh
# The exported hooks must have frame pointers and unmoved stacks: what __builtin_frame_address(0) gives is then the word below the return address. x86-64 only,
# as the cache of verified slots. Argument: the library.
lib=$1
failed=0
case $(uname -m) in x86_64) ;; *) echo "ok hooks_are_not_looked_at_here"; exit 0 ;; esac
objdump -d --no-show-raw-insn "$lib" | awk '
    /^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name); hook = name ~ /^(cu|nvml)[A-Za-z0-9_]*$/ || name ~ /^tn_bound_/; at = 0; if (hook) n++; next }
    hook && NF > 1 {
        at++
        if ($2 ~ /^endbr/) at--
        else if (at == 1 && !($2 == "push" && $3 == "%rbp")) print name ": does not save the frame pointer first"
        else if ($2 == "and" && $3 ~ /^\$0xf.*,%rsp$/) print name ": realigns its stack"
        else if ($2 ~ /^mov/ && $3 == "%rsp,%rbp") set[name] = 1
        last[name] = 1
    }
    END { for (name in last) if (!(name in set)) print name ": sets no frame pointer"; print n " hooks" > "/dev/stderr" }' >"${TEST_TMPDIR:-/tmp}/frames.$$" 2>"${TEST_TMPDIR:-/tmp}/count.$$"
n=$(awk '{ print $1 }' "${TEST_TMPDIR:-/tmp}/count.$$")
if [ -s "${TEST_TMPDIR:-/tmp}/frames.$$" ]; then
    echo "not ok hooks_have_frames:"
    head -20 "${TEST_TMPDIR:-/tmp}/frames.$$"
    failed=1
else
    echo "ok hooks_have_frames ($n hooks)"
fi
if [ "${n:-0}" -lt 400 ]; then
    echo "not ok hooks_were_found: $n"
    failed=1
else
    echo "ok hooks_were_found"
fi
rm -f "${TEST_TMPDIR:-/tmp}/frames.$$" "${TEST_TMPDIR:-/tmp}/count.$$"
exit $failed
