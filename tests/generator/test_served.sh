#!/bin/bash
# usage: test_served.sh RUN GENERATED TENURE LIBTENURE LIBCUDA LIBCUDART
# Random programs of 4 * 10^4 operations together on the fake card, whose workers are late: as natively under record, by plans of their own record,
# and by plans that do not fit them.
here=$PWD
export TENURE_LIB=$here/$4
# A core's worth of noise makes no difference to what is compared, only to how long it takes.
out=$(bash "$here/$1" --generated "$here/$2" --tenure "$here/$3" --fake "$here/$(dirname "$5")" --serve --total-ops 40000 --seeds 12 --first-seed 31 --delay 20)
failed=$?
echo "$out"
# Each way in which a plan can be wrong, and each option, was there.
for how in own small others stale own,waits own,checks own,pinned; do
  if echo "$out" | grep -q "^by $how: [1-9]"; then echo "ok served.$how"; else echo "not ok served.$how: no program ran by it"; failed=1; fi
done
exec test "$failed" = 0
