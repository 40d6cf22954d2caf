#!/bin/sh
# tenure plan --demand: the table as a person reads it, exit codes, charges from a file, wrong arguments and files.
# usage: test_plan_demand.sh CHECK_SH TENURE DEMAND_MD DEMANDS
here=$(pwd)
TENURE=$here/$2 DOCUMENT=$here/$3 DEMANDS=$here/$4
# shellcheck source=tests/cli/check.sh
. "$here/$1"
cd "$WORK" || exit 1

plan() { run "$TENURE" plan --demand "$@"; }

plan "$DEMANDS/does_not_fit.yaml"
same exit_1_where_it_does_not_fit "$rc" 1
same the_table_with_its_levers "$out" "Cannot fit this configuration in the 32607 MiB budget.
The KV pool would have room for 23840 tokens (1490 blocks of 16), and 8 sequences of 4096 tokens need 2048 blocks.

  requested                                       MiB
    CUDA context + driver                        1680
    library reserve                              3900
    engine-persistent                             310
    model weights                               15467
    NVFP4 decode cache + SF slab                 1800
    executor scratch (high-water)                 507
    KV pool (batch 8 x 4096 tok)                12288
                                              -------
    total                                       35952   over by 3345 MiB

  the three largest levers
    limits.max_seq_len 4096 -> 2048      frees 6144 MiB
    kv.dtype f16 -> fp8                  frees 6144 MiB
    limits.max_batch 8 -> 6              frees 3072 MiB, 273 MiB short

  it would fit with limits.max_seq_len 2976 or limits.max_batch 5 or limits.full_sequences 1"

plan "$DEMANDS/does_not_fit.yaml" --budget 35952MiB
same the_budget_of_the_command_goes_first "$rc" 0
holds nothing_is_left "$out" '*35952   0 MiB left*'
plan "$DEMANDS/does_not_fit.yaml" --budget 37698404351
same a_byte_too_little "$rc" 1
holds and_it_is_named "$out" '*over by 1 byte?*'

plan "$DEMANDS/twice_too_much.yaml"
same exit_0_where_it_fits "$rc" 0
holds the_pool_is_what_can_be_reached "$out" '*2048 blocks of 16 tokens, 1179648 bytes each: all that 8 sequences of 4096 tokens can reach'
plan "$DEMANDS/512_tokens.yaml"
same exit_1_below_one_sequence "$rc" 1
holds tokens_are_named "$out" '*room for 512 tokens (16 blocks of 32), and 1 sequence of 32768 tokens needs 1024 blocks.*'

plan "$DEMANDS/does_not_fit.yaml" --json
same json_exits_alike "$rc" 1
same json_adds_up "$(echo "$out" | jq '([.lines[].bytes] | add) == .total_bytes and .total_bytes - .budget_bytes == .over_bytes')" true
same json_totals "$(echo "$out" | jq -c '[.result, .total_bytes, .over_bytes, .kv.wanted_blocks, .would_fit.max_batch, .levers[0].frees_bytes]')" \
    '["kv_below_floor",37698404352,3507486720,2048,5,6442450944]'

# ---- the document's own example ----
sed -n '/^```yaml$/,/^```$/p' "$DOCUMENT" | grep -v '^```' >example.yaml
plan example.yaml
same the_documents_example_is_planned "$rc" 0

# ---- without a budget ----
grep -v '^budget' "$DEMANDS/does_not_fit.yaml" >no_budget.yaml
plan no_budget.yaml
same no_budget_is_no_failure "$rc" 0
holds the_need_is_told "$out" 'This configuration needs 35952 MiB; no budget was given.*'

# ---- charges from a file ----
cat >charges.json <<'END'
{"schema": "tenure-charges/1", "entries": [
 {"gpu": "NVIDIA H200", "driver": "580.65.06", "loading": "lazy", "libraries": [], "measurements": [
  {"run": "a", "date": "2026-11-28", "bytes": {"context": 1, "libraries": 7}},
  {"run": "b", "date": "2026-11-29", "bytes": {"context": 553648128, "libraries": 67108864}},
  {"run": "c", "date": "2026-11-30", "bytes": {"context": 553648128, "libraries": 99999999999}}]},
 {"gpu": "NVIDIA H100", "driver": "580.65.06", "loading": "lazy", "libraries": [], "measurements": [
  {"run": "a", "date": "2026-11-28", "bytes": {"context": 5}}]}]}
END
plan "$DEMANDS/does_not_fit.yaml" --charges charges.json
refused which_set_up 2 '*measurements of 2 set-ups that may be meant: NVIDIA H100*'
sed 's/^model:/device: {gpu: NVIDIA H200}\nmodel:/' "$DEMANDS/does_not_fit.yaml" >h200.yaml
plan h200.yaml --charges charges.json
holds the_median_counts "$out" '*CUDA context + driver (measured)  *528
*library reserve (measured)  *64
*'
mkdir -p state/tenure
cp charges.json state/tenure/
XDG_STATE_HOME=$WORK/state run "$TENURE" plan --demand h200.yaml --remembered
holds remembered_is_the_state_folders "$out" '*library reserve (measured)  *64
*'
XDG_STATE_HOME=$WORK/none run "$TENURE" plan --demand h200.yaml --remembered
refused nothing_remembered 2 "tenure plan: $WORK/none/tenure/charges.json: there is no such file"
XDG_STATE_HOME=state HOME='' run "$TENURE" plan --demand h200.yaml --remembered
refused no_state_folder 2 '*neither XDG_STATE_HOME nor HOME names an absolute path*'
echo '{' >broken.json
plan h200.yaml --charges broken.json
refused broken_charges 2 'tenure plan: broken.json: line 2: *; move the file away to begin anew'
same a_broken_file_is_left "$(cat broken.json)" '{'

# ---- the same bytes everywhere ----
sum() { "$@" "$TENURE" plan --demand "$DEMANDS/512_tokens.yaml" --json | sha256sum; }
first=$(sum env)
same other_environment "$(sum env -i LC_ALL=de_DE.UTF-8 TZ=Asia/Tokyo MALLOC_PERTURB_=85)" "$first"
same other_addresses "$(sum setarch -R)" "$first"

# ---- wrong arguments and files ----
run "$TENURE" plan
refused plan_of_what 2 '*--demand FILE or *is needed*'
run "$TENURE" plan --demand
refused demand_needs_a_value 2 '*option --demand needs a value*'
plan a.yaml b.yaml
refused too_much 2 '*b.yaml is too much*'
plan a.yaml --demand b.yaml
refused one_demand 2 '*one demand file at a time*'
plan a.yaml --charges x --remembered
refused two_charges 2 '*exclude each other*'
plan a.yaml --plan x --remembered
refused charges_and_a_plan 2 '*--plan has charges of its own*'
plan "$DEMANDS/does_not_fit.yaml" --plan absent.json
refused no_such_plan 2 '*absent.json*'
plan a.yaml --frobnicate
refused unknown_option 2 '*unknown option --frobnicate*'
for bad in 32GB -1 '' 99999999TiB 1e9; do
    plan "$DEMANDS/does_not_fit.yaml" --budget "$bad"
    refused "budget_${bad:-empty}" 2 "*--budget: \"$bad\" is no size: at character *"
done
plan absent.yaml
refused absent 2 'tenure plan: absent.yaml: it cannot be read: No such file or directory'
sed 's/max_seq_len/max_sequence_len/' "$DEMANDS/does_not_fit.yaml" >typo.yaml
plan typo.yaml
refused typo 2 'tenure plan: typo.yaml: line 16: there is no key "max_sequence_len" in limits (did you mean max_seq_len?)'
plan "$DEMANDS/does_not_fit.yaml" --charges "$DEMANDS"
refused charges_are_a_folder 2 '*it cannot be read: Is a directory'
run "$TENURE" help plan
holds help_names_the_options "$out" '*--demand*--budget*--charges*--remembered*--json*'
"$TENURE" plan --demand "$DEMANDS/512_tokens.yaml" >/dev/full 2>full.txt
same a_full_disk_is_told "$? $(cat full.txt)" "2 tenure plan: standard output cannot be written: No space left on device"

finish
