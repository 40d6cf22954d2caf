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
# Small programs that were once served otherwise on a card: what mappings pinned memory has, the free of a block from before in a capture that was
# lost, the second free of a block that a stream had freed.
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/served-XXXXXX") || exit 1
LD_LIBRARY_PATH=$here/$(dirname "$5")
export LD_LIBRARY_PATH
while read -r name seed ops only more; do
  program=("$here/$2" --seed "$seed" --ops "$ops" --threads 1 --placed --only "$only" --trace)
  for option in $more; do program+=("$option"); done
  mkdir "$work/$name"
  if "${program[@]}" >"$work/$name.bare" && "$here/$3" record -q -o "$work/$name.run" -- "${program[@]}" >"$work/$name.record" &&
    "$here/$3" plan "$work/$name.run" -o "$work/$name.json" --quiet &&
    LD_PRELOAD=$TENURE_LIB TENURE_RUN=$work/$name TENURE_PLAN=$work/$name.json "${program[@]}" >"$work/$name.served" &&
    [ "$(wc -l <"$work/$name.bare")" -gt 3 ] && cmp "$work/$name.bare" "$work/$name.served"; then
    echo "ok served.$name"
  else
    echo "not ok served.$name"
    diff "$work/$name.bare" "$work/$name.served" | head -n 6
    failed=1
  fi
done <<'EOF'
pinned_mapping 9 23810 640,647 --resets 0
lost_capture 19 23810 8219,8227,8238 --resets 0
lost_capture_alone 14 23810 1130,1133 --resets 0
freed_twice 10 5000 0-751 --resets 0
EOF
rm -rf "$work"
# Each way in which a plan can be wrong, and each option, was there.
for how in own small others stale own,waits own,checks own,pinned; do
  if echo "$out" | grep -q "^by $how: [1-9]"; then echo "ok served.$how"; else echo "not ok served.$how: no program ran by it"; failed=1; fi
done
exec test "$failed" = 0
