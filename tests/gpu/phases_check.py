"""Checks of run_phases.sh on a report's JSON. Usage: phases_check.py NAME REPORT.json; prints "ok NAME" or "not ok NAME: why" lines."""
import json
import sys

MIB = 1 << 20


def check(name, good, why):
    print(f"ok {name}" if good else f"not ok {name}: {why}")


def phases(r):
    return " ".join(p["phase"] for p in r["phases"])


def nvtx(r):
    marks = [m["mark"] for m in r["marks"]]
    check("nvtx.mark", marks.count("weights loaded") == 1, marks)
    ranges = {x["range"]: x for x in r["ranges"]}
    check("nvtx.ranges", ranges.get("round", {}).get("count") == 6 and ranges.get("load", {}).get("count") == 1, ranges)
    check("nvtx.load_range_allocated", ranges.get("load", {}).get("requested_bytes", 0) >= 1024 * MIB, ranges)
    check("nvtx.phases", phases(r) == "loading serving" and r["phases"][1]["cause"] == "line", phases(r))
    mark = next(m for m in r["marks"] if m["mark"] == "weights loaded")
    device = mark["devices"][0]
    check("nvtx.mark_has_a_reading", (device["used_bytes"] or 0) >= 1024 * MIB, device)
    check("nvtx.mark_names_the_gain", mark["by_owner"][0]["owner"].startswith("libc10_cuda"), mark["by_owner"])
    serving = r["serving"]
    # Each round asks for a segment of its own size and gives it back.
    check("nvtx.serving", serving["driver_allocations"] >= 6, serving["driver_allocations"])
    check("nvtx.growth_is_known", serving["charge_growths"] is not None, serving["charge_growths"])
    check("nvtx.nothing_dropped", r["dropped_events"] == 0, r["dropped_events"])


def ctl(r):
    check("ctl.phases", phases(r) == "loading planning serving", phases(r))
    marks = {m["mark"]: m for m in r["marks"]}
    check("ctl.mark", "from outside" in marks, list(marks))
    serving = r["phases"][-1]
    # The command came while the program slept for three seconds; its first call after that was later.
    check("ctl.idle_time", serving["duration_ns"] > 1_500_000_000, serving["duration_ns"])
    check("ctl.serving", r["serving"]["driver_allocations"] >= 4, r["serving"]["driver_allocations"])
    devices = marks.get("from outside", {}).get("devices", [])
    check("ctl.reading", any((d["used_bytes"] or 0) > 1024 * MIB for d in devices), devices)


with open(sys.argv[2]) as f:
    {"nvtx": nvtx, "ctl": ctl}[sys.argv[1]](json.load(f))
