# What the tests of this folder read out of a report. $what chooses; $exe is the name of the program's file.
def stats: [.allocs, .frees, .refused, .live_requested_bytes, .live_backed_bytes];
def peaks: [.peak_requested_bytes, .peak_backed_bytes];
def line: map(tostring) | join(" ");
def places: [.devices[] | {place: "device \(.ordinal)", kinds}] + [{place: "host", kinds: (.host | {pinned, registered})}];
def ours: .owner == $exe;
def add_lists: reduce .[] as $s ([0, 0, 0, 0, 0]; [., $s] | transpose | map(add));
def place: if .device == null then "host" else "device \(.device)" end;

if $what == "totals" then
  places[] | .place as $p | .kinds | to_entries[] | [$p, .key] + (.value | stats + peaks) | line
elif $what == "totals_without_libraries" then
  .sites as $sites | places[] | .place as $p | .kinds | to_entries[] | .key as $k
  | [$sites[] | select((ours | not) and place == $p and .kind == $k) | stats] as $theirs
  | [$p, $k] + ([.value | stats, ($theirs | add_lists | map(-.))] | transpose | map(add)) | line
elif $what == "totals_without_peaks" then
  places[] | .place as $p | .kinds | to_entries[] | [$p, .key] + (.value | stats) | line
elif $what == "ended" then
  (.devices[] | "device \(.ordinal) \(.ended_with_context)"), "host \(.host.ended_with_context)"
elif $what == "driver_calls" then
  .coverage[] | select(.level == "driver" and .class != "resolve" and .calls > 0) | [.api, .calls] | line
elif $what == "runtime_calls" then
  .coverage[] | select(.level == "runtime" and .calls > 0) | [.api, .calls] | line
elif $what == "own_sites" then
  [.sites[] | select(ours) | [(.apis | sort | join("+")), .kind, place] + stats + peaks | line] | sort | .[]
elif $what == "own_sites_by_kind" then
  [.sites[] | select(ours) | [.kind, place] + stats + peaks | line] | sort | .[]
elif $what == "owners" then
  [.sites[].owner] | unique | .[] | tostring
elif $what == "process" then
  .processes | length, (.[] | .linkage, .unwinder, .dropped_events, .ended, .frees_unknown, .frees_failed)
else error("what is \($what)?") end
