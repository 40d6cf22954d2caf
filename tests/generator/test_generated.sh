#!/bin/bash
# usage: test_generated.sh RUN GENERATED TENURE LIBTENURE LIBCUDA LIBCUDART
# Random programs of 6 * 10^4 operations together (the other 4 * 10^4 are test_served's) on the fake card, whose workers are late: as natively under record.
here=$PWD
export TENURE_LIB=$here/$4
# A core's worth of noise makes no difference to what is compared, only to how long it takes.
exec bash "$here/$1" --generated "$here/$2" --tenure "$here/$3" --fake "$here/$(dirname "$5")" --total-ops 60000 --seeds 16 --delay 20
