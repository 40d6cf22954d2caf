#!/bin/sh
# Every program on the fake GPU, without the shim, against what a card made it print.
# shellcheck source=tests/diff/stage.sh
. "$1"
suite golden -p
