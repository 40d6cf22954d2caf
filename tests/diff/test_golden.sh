#!/bin/sh
# Every program on the fake GPU, without the shim, against what a card made it print.
. "$1"
suite golden -p
