#!/bin/sh
# Every program on the fake GPU by plans: by one without rows, and by one of its own record. What a tier served is counted, so that a plan
# that places nothing is not taken for a program that cannot tell.
# shellcheck source=tests/diff/stage.sh
. "$1"
suite serve -p -j 6 >"$STAGE/out"
failed=$?
cat "$STAGE/out"
some=$(sed -n 's/^\([0-9]*\) programs had requests served.*/\1/p' "$STAGE/out")
if [ "${some:-0}" -ge 60 ]; then echo "ok serve.serves"; else echo "not ok serve.serves: $some programs had requests served"; failed=1; fi
exit "$failed"
