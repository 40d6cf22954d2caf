#!/bin/sh
# What does not come past the hooks is named in the report, with what it resolved by itself; what does is not.
# shellcheck source=tests/diff/stage.sh
. "$1"
failures=0

# report HOW: the report of `loader HOW`, its lines joined
report() {
    rm -rf "$STAGE/run"
    LD_LIBRARY_PATH=$STAGE/fake "$STAGE/cli/tenure" record -q -o "$STAGE/run" -- "$STAGE/bin/loader" "$1" >/dev/null 2>&1
    "$STAGE/cli/tenure" report "$STAGE/run" | tr -s ' \n' ' '
}

# check NAME: the last command's success
check() {
    if [ "$2" -eq 0 ]; then echo "ok bypass.$1"; else echo "not ok bypass.$1"; failures=1; fi
}

deep=$(report deepbind)
echo "$deep" | grep -q 'libwork.so resolved by itself: [^:]*cudaMalloc (libcudart.so.13)'
check "names the library that was opened with RTLD_DEEPBIND" $?
echo "$deep" | grep -q 'libcudart.so.13 resolved by itself: dlsym (libc.so.6)'
check "names the runtime that came with it" $?
for how in local global runpath; do
    report $how | grep -q 'Nothing was found that the hooks could not reach'
    check "finds nothing where nothing is ($how)" $?
done
exit $failures
