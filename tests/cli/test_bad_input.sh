#!/bin/sh
# Wrong arguments and unusable files: one clear sentence, exit code 2 or 3, nothing overwritten.
# usage: test_bad_input.sh CHECK_SH TENURE MAKE_EXAMPLE PROBE_SO
here=$(pwd)
TENURE=$here/$2 EXAMPLE=$here/$3 PROBE=$here/$4
# shellcheck source=tests/cli/check.sh
. "$here/$1"
cd "$WORK" || exit 1

# ---- usage ----
run "$TENURE"
refused no_command 2 'tenure: no command given*'
run "$TENURE" frobnicate
refused unknown_command 2 'tenure: there is no command frobnicate*'
run "$TENURE" --frobnicate
refused unknown_global_option 2 'tenure: unknown option --frobnicate*'
run "$TENURE" help frobnicate
refused help_for_unknown 2 '*there is no command frobnicate*'
run "$TENURE" report
refused report_without_run 2 '*no run folder given*'
run "$TENURE" report --html x.html somewhere
refused html_is_not_there_yet 2 '*unknown option --html*'
run "$TENURE" report --export=pprof somewhere
refused export_is_not_there_yet 2 '*unknown option --export=pprof*'
run "$TENURE" report --top many somewhere
refused top_needs_a_number 2 '*--top needs a number, not many*'
run "$TENURE" report somewhere --top
refused top_needs_a_value 2 '*option --top needs a value*'
run "$TENURE" report --top -1 somewhere
refused top_is_not_negative 2 '*--top needs a number, not -1*'
run "$TENURE" report --by size somewhere
refused by_what 2 '*--by takes library, site, kind or phase, not size*'
for bad in x -1 nan 0x10 1e9 ''; do
    run "$TENURE" report --symbol-seconds "$bad" somewhere
    refused "symbol_seconds_${bad:-empty}" 2 "*--symbol-seconds needs a number of seconds, not $bad*"
    run "$TENURE" report --symbol-mib "$bad" somewhere
    refused "symbol_mib_${bad:-empty}" 2 "*--symbol-mib needs a number of MiB, not $bad*"
done
run "$TENURE" report somewhere --at
refused at_needs_a_value 2 '*option --at needs a value*'
run "$TENURE" report one two
refused two_runs 2 '*two is too much*'
export TENURE_LIB="$PROBE"
run "$TENURE" record -- true
refused record_without_folder 2 '*-o RUN is needed*'
run "$TENURE" record -o run
refused record_without_program 2 '*no program given*'
run "$TENURE" record -z -o run -- true
refused record_unknown_option 2 '*unknown option -z*'
[ -e run ] && not_ok usage_makes_nothing 'run was made' || ok usage_makes_nothing

# ---- programs that cannot start ----
run "$TENURE" record -o run -- no-such-program-here
refused missing_program 2 '*no-such-program-here: command not found'
run "$TENURE" record -o run -- ./no-such-program-here
refused missing_program_by_path 2 '*: ./no-such-program-here: No such file or directory'
echo data >data
run "$TENURE" record -o run -- ./data/program
refused program_below_a_file 2 '*: ./data/program: Not a directory'
run env PATH=data "$TENURE" record -o run -- no-such-program-here
refused file_in_the_search_path 2 '*: no-such-program-here: command not found'
echo data >plain
chmod 644 plain
run "$TENURE" record -o run -- ./plain
refused not_executable 2 '*./plain cannot be executed: Permission denied'
run "$TENURE" record -o run -- "$WORK"
refused a_folder_as_program 2 '*cannot be executed: Is a directory'
printf '#!/no/such/interpreter\n' >orphan
chmod 755 orphan
run "$TENURE" record -o run -- ./orphan
refused missing_interpreter 2 '*./orphan cannot be executed: its interpreter /no/such/interpreter is not there'
# A folder whose absolute name does not fit is given up, and does not stay behind.
deep=$(printf 'd%.0s' $(seq 200))
(
    for _ in $(seq 24); do mkdir "$deep" && cd -P "$deep" || exit 1; done
    "$TENURE" record -o run -- true 2>"$WORK/.err"
    echo "$?:$(ls)" >"$WORK/.out"
) 2>/dev/null
same too_deep_a_folder_is_refused "$(cat .out)" 2:
holds too_deep_a_folder_is_named "$(cat .err)" '*the run folder run cannot be found again: File name too long'
[ -e run ] && not_ok failed_start_leaves_nothing 'run was left' || ok failed_start_leaves_nothing

# ---- the journals' limit ----
for limit in abc -5 1.5 0 +1 ' 7' 8k 0x10 1073741825 99999999999999999999999; do
    run env TENURE_JOURNAL_MAX_MIB="$limit" "$TENURE" record -o run -- touch started
    refused "journal_limit_$limit" 2 "tenure record: TENURE_JOURNAL_MAX_MIB is $limit, not a whole number of MiB from 1 to 1073741824"
done
[ -e run ] || [ -e started ] && not_ok bad_limit_starts_nothing 'it started' || ok bad_limit_starts_nothing
for limit in 1 0064 1073741824 ''; do
    run env TENURE_JOURNAL_MAX_MIB="$limit" "$TENURE" record -q -o "limit$limit" -- sh -c 'echo "$TENURE_JOURNAL_MAX_MIB"'
    same "journal_limit_${limit:-empty}" "$rc:$out:$err" "0:$limit:"
done

# ---- libtenure.so ----
TENURE_LIB=$WORK/none.so run "$TENURE" record -o run -- touch started
refused library_missing 2 '*TENURE_LIB names */none.so, which cannot be read*'
mkdir bare && cp "$TENURE" bare/tenure
(unset TENURE_LIB; "$WORK/bare/tenure" record -o run -- touch started) >.out 2>.err
rc=$? out=$(cat .out) err=$(cat .err)
refused library_not_beside 2 '*libtenure.so is neither in */bare nor*set TENURE_LIB'
mkdir 'with blank' && cp "$PROBE" 'with blank/libtenure.so'
TENURE_LIB="with blank/libtenure.so" run "$TENURE" record -o run -- touch started
refused library_path_with_blank 2 '*which LD_PRELOAD cannot carry'
[ -e started ] && not_ok nothing_started 'the program ran' || ok nothing_started

# ---- run folders ----
echo precious >file
run "$TENURE" record -o file -- touch started
refused run_folder_is_a_file 2 '*file is there already and is not a folder'
run "$TENURE" record -o file/below -- touch started
refused run_folder_below_a_file 2 '*cannot be made: Not a directory'
run "$TENURE" record -o /proc/tenure-run -- touch started
refused run_folder_in_proc 2 '*cannot be made*'
run "$TENURE" record -o '' -- touch started
refused run_folder_without_name 2 '*empty or too long'
same file_is_untouched "$(cat file)" precious
mkdir used && echo old >used/note
run "$TENURE" record -o used -- touch started
refused run_folder_not_empty 2 '*used is not empty, and nothing in it is overwritten'
same used_is_untouched "$(ls -A used):$(cat used/note)" note:old
mkdir taken && "$EXAMPLE" taken/a.tnj && before=$(cksum <taken/a.tnj)
run "$TENURE" record -o taken -- touch started
refused run_folder_with_journals 2 '*is not empty*'
same journals_are_untouched "$(ls -A taken):$(cksum <taken/a.tnj)" "a.tnj:$before"
mkdir sealed
if unshare -rm sh -c 'mount -t tmpfs -o ro none sealed' 2>/dev/null; then
    run unshare -rm sh -c 'mount -t tmpfs -o ro none sealed && exec "$@"' sh "$TENURE" record -o sealed -- touch started
    refused run_folder_read_only 2 '*sealed cannot be written: Read-only file system'
    run unshare -rm sh -c 'mount -t tmpfs -o ro none sealed && exec "$@"' sh "$TENURE" record -o sealed/run -- touch started
    refused run_folder_in_read_only 2 '*cannot be made: Read-only file system'
else
    echo "# no user namespaces here: the read-only folder was not tried"
fi
[ -e started ] && not_ok unusable_folder_starts_nothing 'the program ran' || ok unusable_folder_starts_nothing

# ---- journals ----
run "$TENURE" report nowhere
refused missing_run 2 '*nowhere: No such file or directory'
mkdir empty
run "$TENURE" report empty
refused empty_run 3 '*empty: no journal*'
run "$TENURE" report plain
refused foreign_file 2 '*plain: *'
mkdir foreign && cp plain foreign/x.tnj
run "$TENURE" report foreign
refused foreign_journal 2 '*foreign/x.tnj: *'
head -c 300000 /dev/urandom >noise.tnj
run "$TENURE" report noise.tnj
refused noise 2 '*noise.tnj: *'
: >zero.tnj
run "$TENURE" report zero.tnj
refused zero_bytes 2 '*zero.tnj: *'
"$EXAMPLE" short.tnj 1000
run "$TENURE" report short.tnj
refused truncated_header 2 '*short.tnj: *'
"$EXAMPLE" cut.tnj 100000
run "$TENURE" report cut.tnj
same truncated_chunk_code "$rc" 3
holds truncated_chunk_is_named "$err" '*warning: cut.tnj: *'
holds truncated_chunk_reports_the_rest "$out" 'WARNING: *Tenure report*'
mkdir mixed && "$EXAMPLE" mixed/good.tnj && cp plain mixed/bad.tnj
run "$TENURE" report mixed
same one_bad_of_two_code "$rc" 3
same one_bad_of_two_lines "$(wc -l <.err)" 1
holds one_bad_of_two_is_named "$err" '*warning: bad.tnj cannot be read*'
holds one_bad_of_two_reports_the_good "$out" '*NVIDIA Example*'
mkdir pipe.d && mkfifo pipe.d/p.tnj
run timeout 10 "$TENURE" report pipe.d
refused pipe_as_journal 2 '*p.tnj: *'

# A journal of a version to come, by its version and by its magic: named as that, not as damage.
"$EXAMPLE" newer.tnj
printf '\x02' | dd of=newer.tnj bs=1 seek=8 conv=notrunc 2>/dev/null
run "$TENURE" report newer.tnj
refused newer_version 2 '*newer.tnj: *version*'
"$EXAMPLE" newest.tnj
printf 2 | dd of=newest.tnj bs=1 seek=7 conv=notrunc 2>/dev/null
run "$TENURE" report newest.tnj
refused newer_magic 2 '*newest.tnj: *version*'
"$EXAMPLE" secret.tnj
chmod 000 secret.tnj
if [ -r secret.tnj ]; then
    run setpriv --reuid 65534 --clear-groups "$TENURE" report secret.tnj
    # Another user may not reach the folder, or the command, at all.
    [ "$rc" = 127 ] || [ "$rc" = 126 ] || refused unreadable 2 '*secret.tnj: *'
else
    run "$TENURE" report secret.tnj
    refused unreadable 2 '*secret.tnj: *'
fi
"$EXAMPLE" marked.tnj
run "$TENURE" report marked.tnj --at warm
refused no_such_mark 2 '*marked.tnj: there is no mark or phase warm in this run, which has no marks'
run "$TENURE" report marked.tnj --at 1 --json -o at.json
refused no_such_number 2 '*there is no mark or phase 1 *'
[ -e at.json ] && not_ok no_mark_no_file 'at.json was made' || ok no_mark_no_file
run "$TENURE" report marked.tnj --symbol-seconds 0 --by kind --top 1
same limits_and_tables "$rc:$err" 0:

# ---- -o ----
"$EXAMPLE" good.tnj
echo precious >kept
run "$TENURE" report good.tnj -o kept
refused output_exists 2 '*kept exists already and is not overwritten'
same output_is_kept "$(cat kept)" precious
run "$TENURE" report good.tnj -o /nowhere/x
refused output_unwritable 2 '*cannot be created: No such file or directory'
"$TENURE" report good.tnj >/dev/full 2>.err
rc=$? out="" err=$(cat .err)
refused output_full 2 '*standard output cannot be written*'
run "$TENURE" report good.tnj --json -o new.json
same output_written "$rc:$out$err" 0:
same output_is_the_report "$(cat new.json)" "$("$TENURE" report good.tnj --json -o -)"
finish
