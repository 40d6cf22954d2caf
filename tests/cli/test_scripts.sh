#!/bin/sh
# The project's scripts, started through a link, from elsewhere, in an odd folder, with an odd CUDA_HOME.
# usage: test_scripts.sh CHECK_SH SCRIPT...
here=$(pwd)
# shellcheck source=tests/cli/check.sh
. "$here/$1"
shift
mkdir -p "$WORK/plain/scripts" "$WORK/with blank/scripts" "$WORK/elsewhere" "$WORK/bin"
for script; do
    cp -L "$here/$script" "$WORK/plain/scripts/" && cp -L "$here/$script" "$WORK/with blank/scripts/" || exit 1
done
cd "$WORK/elsewhere" || exit 1
unset CUDA_HOME

# ---- through a link: each finds its parts and says how it is called ----
for script in ../plain/scripts/*; do
    name=${script##*/}
    [ "$name" != lib.sh ] || continue
    # One that does not find its parts would go on without them.
    grep -q '^\. "$(dirname "$(readlink -f "$0")")/lib.sh"$' "$script" || { not_ok "link_to_$name" 'it looks for lib.sh beside the link'; continue; }
    ln -s "$script" "$name"
    run "./$name" --no-such-argument
    refused "link_to_$name" 2 "usage: $name*"
    ln -s "$name" "again-$name"
    run "./again-$name" --no-such-argument
    refused "link_to_a_link_to_$name" 2 "usage: $name*"
done

# ---- a folder that Bazel cannot build in ----
run "../with blank/scripts/setup"
refused blank_in_the_path 1 "setup: Bazel cannot build in a folder with a blank in its path, and this is $WORK/with blank; move the checkout."

# ---- CUDA_HOME ----
# In place of Bazel a program that tells where it stands and what it was given.
cat >"$WORK/bin/bazel" <<'BAZEL'
#!/bin/sh
echo "$PWD|${CUDA_HOME-unset}|$1"
BAZEL
cat >"$WORK/plain/scripts/ask" <<'ASK'
#!/usr/bin/env bash
. "$(dirname "$(readlink -f "$0")")/lib.sh"
echo "$CUDA_HOME"
run_bazel info
ASK
chmod 755 "$WORK/bin/bazel" "$WORK/plain/scripts/ask"
PATH=$WORK/bin:$PATH
export PATH
plain=$(cd "$WORK/plain" && pwd -P)
ask() { # ask NAME CUDA_HOME WANTED
    run env CUDA_HOME="$2" ../plain/scripts/ask
    same "$1" "$rc:$err:$(echo "$out" | tr '\n' ' ')" "0::$3 $plain|$3|info "
}
run ../plain/scripts/ask
same home_not_set "$rc:$err:$(echo "$out" | tr '\n' ' ')" "0::/usr/local/cuda $plain|unset|info "
ask home_empty '' /usr/local/cuda
ask home_absolute /opt/cuda /opt/cuda
mkdir -p toolkit/cuda
ask home_relative toolkit/cuda "$(pwd)/toolkit/cuda"
ask home_above ../elsewhere/toolkit "$WORK/elsewhere/toolkit"
ask home_here . "$(pwd)"
ask home_missing not/there "$(pwd)/not/there"
finish
