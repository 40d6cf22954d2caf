#!/bin/sh
# Disks that fill up, end at a limit, turn read-only or go away: the program's output and exit code are as without us, and what was lost is
# counted in the journal or said by tenure record.
# Mounts of our own, seen by nobody else: the rest of this file runs in a mount namespace.
if [ -z "$DISK_INSIDE" ]; then
    if unshare -m true 2>/dev/null; then
        DISK_INSIDE=1 unshare -m sh "$0" "$@"
    elif unshare -rm true 2>/dev/null; then
        DISK_INSIDE=1 unshare -rm sh "$0" "$@"
    else
        echo 'skip disk: no mount namespace is to be had here'
        exit 0
    fi
    exit $?
fi
mount --make-rprivate / 2>/dev/null
# shellcheck source=tests/shim/lib.sh
. "$1"
trap 'cd /; umount -l "$WORK"/tmpfs "$WORK"/ro "$WORK"/busy "$WORK"/ext4 2>/dev/null; rm -rf "$WORK"' EXIT
N=20000 # pairs on each of two threads before and after: 160000 events or more, 10 MB

: >go
native disk.native "$BIN/prog_disk" $N ready.native go
same natively "$rc:$(cat disk.native.out)" '7:first half: 0 errors
second half: 0 errors
handlers untouched: 1
last: 0'

# one NAME PREFIX: whole output as natively, one thing said at most once
output() { same_output "$1_output" disk.native "$2"; }
one_line() { same "$1_said_once" "$(grep -c "$3" "$2.tenure")" 1; }
# mid_run NAME RUN ACTION...: records, and does ACTION half way
mid_run() {
    name=$1 run=$2
    shift 2
    rm -f "$name.ready" "$name.go"
    (
        wait_for 20 test -e "$name.ready"
        "$@" >"$name.action" 2>&1
        echo $? >>"$name.action"
        : >"$name.go"
    ) &
    action=$!
    recorded "$name" "$run" "$BIN/prog_disk" $N "$name.ready" "$name.go"
    wait $action
}

# ---- with room, nothing is lost: the same program counted
recorded room run.room "$BIN/prog_disk" $N ready.room go
output room room
same room_nothing_lost "$(total run.room dropped) $(total run.room allocs) $(total run.room frees)" "0 $((4 * N + 1)) $((4 * N))"
empty room_nothing_said "$(cat room.tenure)"

# ---- a tmpfs of 8 MiB that the journal fills
mkdir tmpfs && mount -t tmpfs -o size=8m tmpfs tmpfs || exit 1
recorded full tmpfs/run "$BIN/prog_disk" $N ready.full go
output full full
sum=$(totals tmpfs/run)
same full_journal_is_whole "$(field "$sum" journals) $(field "$sum" damaged)" '1 0'
at_least full_drops_are_counted "$(field "$sum" dropped)" 20000
# A pair is two events and a wait; what is there and what was dropped make up the whole, but for the readings that are taken by time.
have=$(($(field "$sum" events) + $(field "$sum" dropped))) whole=$(($(total run.room events) - 200))
at_least full_events_and_drops_are_all $have "$whole"
at_least full_and_not_more $((whole + whole / 50)) $have
one_line full full 'events were dropped'
rm -rf tmpfs/run

# ---- it fills with somebody else's bytes half way, and is empty again later
fill() { dd if=/dev/zero of=tmpfs/other bs=64k 2>/dev/null; }
mid_run filled tmpfs/run fill
output filled filled
at_least filled_drops_are_counted "$(total tmpfs/run dropped)" 20000
rm -rf tmpfs/run tmpfs/other

# ---- full from the very start: run.json has its place, a journal has none
dd if=/dev/zero of=tmpfs/other bs=4k 2>/dev/null
dd if=/dev/null of=tmpfs/other bs=4k seek=2046 2>/dev/null
recorded start tmpfs/run "$BIN/prog_disk" $N ready.start go
output full_from_the_start start
if has_journal tmpfs/run; then
    at_least full_from_the_start_is_counted "$(total tmpfs/run dropped)" 20000
else
    same full_from_the_start_is_said "$(grep -c . start.tenure)" 1
fi
rm -rf tmpfs/run
preloaded start2 tmpfs/run2 "$BIN/prog_disk" $N ready.start2 go
output full_from_the_start_preload start2
rm -rf tmpfs/run2
dd if=/dev/zero of=tmpfs/other bs=1k oflag=append conv=notrunc 2>/dev/null
mkdir tmpfs/run3 2>/dev/null
recorded start3 tmpfs/run3 "$BIN/prog_disk" $N ready.start3 go
same no_place_for_run_json "$rc:$(cat start3.out):$(grep -c . start3.tenure)" 2::1
rm -rf tmpfs/other tmpfs/run3

# ---- a limit on the size of files, which kills by SIGXFSZ whoever writes beyond it
for kib in 4 512 2048; do
    recorded "limit$kib" "run.limit$kib" sh -c "ulimit -f $((kib * 2)); exec \"\$@\"" sh "$BIN/prog_disk" $N "ready.limit$kib" go
    output "limit_of_${kib}_KiB" "limit$kib"
done
same limit_keeps_the_journal_below "$(find run.limit2048 -name '*.tnj' -size -2049k | grep -c .)" 1
at_least limit_drops_are_counted "$(total run.limit2048 dropped)" 20000
one_line limit limit2048 'events were dropped'
same limit_below_a_header_is_said "$(grep -c . limit4.tenure)" 1

# ---- the run folder goes away
gone() { rm -rf run.gone; }
mid_run gone run.gone gone
output gone gone
same gone_is_said "$(cat gone.tenure | grep -c 'was removed')" 1
moved() { mv run.moved run.elsewhere; }
mid_run moved run.moved moved
output moved moved
at_least moved_journal_is_there "$(total run.elsewhere allocs)" $((2 * N))

# ---- unwritable from the start
mkdir ro && mount -t tmpfs -o ro tmpfs ro
recorded unwritable ro/run "$BIN/prog_disk" $N ready.unwritable go
same unwritable_ends_with_2 "$rc:$(cat unwritable.out):$(grep -c . unwritable.tenure)" 2::1
same unwritable_did_not_start "$(ls ready.unwritable 2>/dev/null)" ''
for run in "$WORK/ro" "$WORK/not/there" /proc "$WORK/go" .; do
    LD_LIBRARY_PATH=$LIB LD_PRELOAD=$PRELOAD TENURE_RUN=$run "$BIN/prog_disk" 1000 ready.unrecorded go >un.out 2>un.err </dev/null
    echo $? >un.rc
    if [ "$run" = . ]; then
        at_least relative_folder_is_recorded "$(total . allocs)" 4000
    else
        same_output "unrecorded_in_$(basename "$run")" disk.native un
    fi
done
umount ro

# ---- remounted read-only. A file that is open for writing keeps an orderly remount off: the kernel says busy, and the record goes on.
mkdir busy && mount -t tmpfs -o size=64m tmpfs busy
mid_run remount busy/run mount -o remount,ro busy
output remount remount
echo "remount,ro of a tmpfs with a journal on it: $(tail -n 1 remount.action), $(head -n 1 remount.action)"
if [ "$(tail -n 1 remount.action)" = 0 ]; then
    ok remount_went_through
else
    same remount_was_refused_and_nothing_lost "$(total busy/run dropped) $(total busy/run allocs)" "0 $((4 * N + 1))"
fi
umount busy

# What does go through is the kernel's own remount after an error of the disk, here ext4's `abort`: once with every page of the journal
# written back and write-protected before it, once with writing back tried after it.
synced_abort() { sync -f ext4 && mount -o remount,abort ext4; }
abort_synced() { mount -o remount,abort ext4 && { sync -f ext4 || true; }; }
for way in synced_abort abort_synced; do
    dd if=/dev/zero of=image bs=1M count=48 2>/dev/null
    mkdir -p ext4
    if command -v mkfs.ext4 >/dev/null && mkfs.ext4 -q -F image 2>/dev/null && mount -o loop image ext4 2>mount.err; then
        mid_run $way ext4/run $way
        same ${way}_was_done "$(tail -n 1 $way.action)" 0
        output $way $way
        empty ${way}_is_read_only "$(touch ext4/x 2>/dev/null && echo 'it still takes writes')"
        one_line $way $way 'events were dropped'
        one_line ${way}_stop $way 'recording stopped'
        at_least ${way}_first_half_is_there "$(total ext4/run frees)" $((2 * N))
        umount ext4
    else
        skip $way "no ext4 on a loop device here: $(cat mount.err 2>/dev/null)"
    fi
done
finish
