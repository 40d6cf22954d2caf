#!/bin/sh
# Every program on the fake GPU, recorded, against itself bare.
. "$1"
suite record -p
