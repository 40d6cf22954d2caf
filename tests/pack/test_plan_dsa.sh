#!/bin/sh
# tenure plan --dsa: what it prints and writes, the same from any order of lines and any process, and what it refuses.
# usage: test_plan_dsa.sh CHECK_SH TENURE
here=$(pwd)
TENURE=$here/$2
# shellcheck source=tests/cli/check.sh
. "$here/$1"
cd "$WORK" || exit 1

cat >five.csv <<'CSV'
id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
CSV
run "$TENURE" plan --dsa five.csv -o out.csv
same packs "$rc:$err" 0:
holds says_height "$out" '*lower bound    12*height         12, proved to be the least*ratio          1.0000*'
holds says_who "$out" '*by size *12 *1.0000  taken*'
same writes_offsets "$(head -n 1 out.csv)" 'id,lower,upper,size,offset'
same writes_every_line "$(cut -d, -f1-4 out.csv)" "$(cat five.csv)"
run "$TENURE" plan --dsa=out.csv
same takes_its_own_output "$rc:$err" 0:
holds offsets_are_hints "$out" '*hints *12 *'

# A few hundred buffers; the same bytes for the same buffers.
awk 'BEGIN { srand(7); print "id,lower,upper,size,alignment"
  for (i = 0; i < 300; i++) { l = int(rand() * 1000); print "n" i "," l "," l + 1 + int(rand() * 90) "," 1 + int(rand() * 9000) "," 2 ^ int(rand() * 6) } }' >many.csv
{ head -n 1 many.csv && tail -n +2 many.csv | sort -r; } >turned.csv
run "$TENURE" plan --dsa many.csv --steps 30000000 -o one.csv
same many_are_packed "$rc:$err:$(wc -l <one.csv)" 0::301
first=$out
run env LC_ALL=C HOME=/ "$TENURE" plan --dsa turned.csv --steps 30000000 -o two.csv
same same_text_from_another_order "$out" "$first"
same same_offsets_from_another_order "$(sort two.csv)" "$(sort one.csv)"
run "$TENURE" plan --dsa many.csv --steps 30000000 -o three.csv
same same_bytes_from_another_process "$(cksum <three.csv)" "$(cksum <one.csv)"

# ---- refusals ----
run "$TENURE" plan
refused plan_without_input 2 'tenure plan: *'
run "$TENURE" plan --dsa
refused dsa_needs_a_value 2 '*option --dsa needs a value*'
run "$TENURE" plan --dsa nowhere.csv
refused no_such_file 2 'tenure plan: nowhere.csv: the file cannot be read: No such file or directory'
run "$TENURE" plan --dsa five.csv more.csv
refused one_file 2 '*more.csv is too much*'
run "$TENURE" plan --dsa five.csv --dsa more.csv
refused one_dsa 2 '*--dsa takes one file*'
for bad in 0 x -1 99999999999999999999; do
    run "$TENURE" plan --dsa five.csv --steps $bad
    refused "steps_$bad" 2 "*--steps needs a whole number from 1 on, not $bad*"
done
run "$TENURE" plan --dsa five.csv --frobnicate
refused unknown_option 2 '*unknown option --frobnicate*'
run "$TENURE" plan --dsa five.csv -o nowhere/out.csv
refused output_cannot_be_made 2 '*nowhere/out.csv cannot be written: No such file or directory'
printf 'id,lower,upper,size\na,0,3,4\nb,x,3,4\n' >bad.csv
run "$TENURE" plan --dsa bad.csv
refused names_file_and_line 2 'tenure plan: bad.csv:3: lower is "x", which is not a whole number from 0 to 2^64 - 1'
printf 'id,lower,upper,size\na,0,3,18446744073709551615\n' >huge.csv
run "$TENURE" plan --dsa huge.csv
refused sizes_that_overflow 2 'tenure plan: huge.csv:2: the sizes add up to more than 2^62 bytes'
if [ -e /dev/full ]; then
    run "$TENURE" plan --dsa five.csv -o /dev/full
    refused full_disk 2 '*/dev/full cannot be written: No space left on device'
fi
finish
