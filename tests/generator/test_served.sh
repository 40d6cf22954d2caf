#!/bin/bash
# usage: test_served.sh RUN GENERATED TENURE LIBTENURE LIBCUDA LIBCUDART
# Random programs of 4 * 10^4 operations together on the fake card, whose workers are late: as natively under record, by plans of their own record,
# and by plans that do not fit them.
here=$PWD
export TENURE_LIB=$here/$4
# A core's worth of noise makes no difference to what is compared, only to how long it takes.
exec bash "$here/$1" --generated "$here/$2" --tenure "$here/$3" --fake "$here/$(dirname "$5")" --serve --total-ops 40000 --seeds 12 --first-seed 31 --delay 20
