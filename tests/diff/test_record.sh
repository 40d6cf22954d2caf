#!/bin/sh
# Every program on the fake GPU, recorded, against itself bare.
# shellcheck source=tests/diff/stage.sh
. "$1"
suite record -p
