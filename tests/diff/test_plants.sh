#!/bin/sh
# Each fault planted in the shim is noticed by at least one program; the same build without a fault by none.
# shellcheck source=tests/diff/stage.sh
. "$1"
export TENURE_LIB="$STAGE/shim/libtenure_planted.so"
failures=0

# planted FAULT MODE PROGRAM...: the programs that should notice; which ones did is printed.
planted() {
    fault=$1 mode=$2
    shift 2
    TN_PLANT=$fault suite "$mode" -p "$@" >"$STAGE/out"
    noticed=$(sed -n 's/^not ok [a-z]*\.\([^:]*\): differs.*$/\1/p' "$STAGE/out" | tr '\n' ' ')
    if [ -n "$noticed" ]; then
        echo "ok plants.$fault"
        echo "    noticed by $noticed"
    else
        echo "not ok plants.$fault: nobody noticed"
        cat "$STAGE/out"
        failures=1
    fi
}

if suite record -p alignment cross_level oom_retry per_thread query_threads waiting >"$STAGE/out" && [ "$(grep -c '^ok ' "$STAGE/out")" = 6 ]; then
    echo "ok plants.none"
else
    echo "not ok plants.none: the build without a fault is noticed"
    cat "$STAGE/out"
    failures=1
fi
planted wrong_code record oom_retry
planted lost_error record cross_level
planted extra_wait record waiting
planted stray_context record query_threads
planted missed_variant record per_thread
planted small_alignment record alignment
if suite serve -p reuse_calm >"$STAGE/out"; then
    echo "ok plants.none_served"
else
    echo "not ok plants.none_served: the build without a fault is noticed"
    cat "$STAGE/out"
    failures=1
fi
planted unmarked_work serve reuse_calm
exit $failures
