#!/bin/bash
# A plan of 10 million events within 1 GiB of data segment, which holds every anonymous page, and in 5 s of processor time on a quiet machine
# (docs/MEASUREMENTS.md has the figure). The bound here is half as much again: on shared machines the same program was seen to take
# 4.3 and 6.7 s within two minutes. There memory can also become slow for minutes, while what only computes goes on as ever: the same program then took
# 15 to 43 s, and tenure verify, which reads the same journal and walks the same lives, 15 to 24. So four times that is not too long either; what grows with
# the square of something is.
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
MAKE_BIG=$(readlink -f "$3")
MEASURE=$(readlink -f "$4")
cd "$WORK" || exit 1

# A busy machine is no quiet one: making the journal takes under 1.5 s of processor time there, and where it takes longer the limit is
# longer in proportion.
MAX_CPU_MS=7500
MAKE_CPU_MS=1500

run "$MEASURE" figures "$MAKE_BIG" run 10000000 10000 300
same made "$rc:$err" 0:
read -r _ made_cpu _ <figures
limit=$((made_cpu > MAKE_CPU_MS ? MAX_CPU_MS * made_cpu / MAKE_CPU_MS : MAX_CPU_MS))
run "$TENURE" plan run --quiet -o plan.json
for try in 1 2 3; do
    "$MEASURE" figures "$TENURE" verify plan.json run >verified
    read -r _ read_cpu _ <figures
    limit=$((read_cpu * 4 > limit ? read_cpu * 4 : limit))
    (ulimit -d 1048576 && exec "$MEASURE" figures "$TENURE" plan run -o plan.json) >out 2>err
    rc=$?
    read -r wall cpu anon <figures
    echo "try $try: $wall ms by the clock, $cpu ms of processor time (limit $limit), $((anon >> 10)) MiB of anonymous memory"
    [ "$cpu" -ge "$limit" ] || break
done
same planned "$rc:$(cat err)" 0:
holds summary "$(cat out)" '*10000000 events*10000 sites*'
if [ "$cpu" -lt "$limit" ]; then ok time; else not_ok time "$cpu ms of processor time"; fi
if [ "$anon" -gt 0 ] && [ "$anon" -lt 1048576 ]; then ok memory; else not_ok memory "$anon KiB"; fi
run "$TENURE" verify plan.json run
holds it_holds "$rc:$out" '0:*The plan holds.'
finish
