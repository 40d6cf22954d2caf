#!/usr/bin/env python3
"""What a report (tenure report --json, on standard input) says was alive at the end, as the generated program says it:
live.KIND=BYTES, one line a kind; then what must not be in a complete record of a correct program, one line each."""
import json
import sys

KINDS = ["device", "pitch", "async", "pool", "managed", "pinned", "registered", "array", "mipmap", "vmm_handle", "graph"]

report = json.load(sys.stdin)
for kind in KINDS:
    if kind in ("pinned", "registered"):
        total = report["host"][kind]["live_requested_bytes"]
    else:
        total = sum(device["kinds"][kind]["live_requested_bytes"] for device in report["devices"])
    print(f"live.{kind}={total}")
print(f"dropped_events={report['dropped_events']}")
for key in ("dropped_records", "frees_unknown", "replaced"):
    print(f"{key}={sum(process[key] for process in report['processes'])}")
