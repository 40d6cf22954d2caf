"""Holds the accounts of devices in reports to the bounds.

explain_check.py bounds NAME REPORT_JSON     |unattributed| <= 0.5 % of what the run uses, growth, other and unknown <= 1 %, at every
                                             mark and at the end; tables by library and by line add up; prints a table
explain_check.py hidden BASE_JSON HIDDEN_JSON  the same program with hooks switched off: at every mark unattributed is higher by the bytes
                                             of the lines that are missing, and nothing else has grown; prints them
Exit code 1 where a bound does not hold, 2 where there is nothing to hold."""
import json
import sys

MIB = 1 << 20
UNATTRIBUTED = 0.005
UNEXPLAINED = 0.01
# Lines that name nobody's doing.
UNKNOWN = ("growth", "other", "unknown")


def devices(path):
    with open(path, encoding="utf-8") as file:
        return [d for d in json.load(file)["devices"] if d["own_used_bytes"] is not None]


def readings(device):
    return device["marks"] + [dict(device["readings"]["last"], label="(the end)")]


def unknown_owner(device):
    return sum(line["bytes"] for line in device["by_library"] if line["owner"] == "unknown")


def bounds(name, path):
    good = True
    seen = devices(path)
    for d in seen:
        rows = readings(d)
        for i, r in enumerate(rows):
            own, rest = r["own_used_bytes"], r["unattributed_bytes"]
            vague = sum(abs(r["charges"].get(k, 0)) for k in UNKNOWN)
            if i == len(rows) - 1:
                vague += abs(unknown_owner(d))
            holds = own > 0 and abs(rest) <= UNATTRIBUTED * own and vague <= UNEXPLAINED * own
            good = good and holds
            print(f"  {name:17} {r['label'] or r['cause']:20.20} own {own / MIB:10.2f}  accounted {r['accounted_bytes'] / MIB:10.2f}  "
                  f"unattributed {rest / MIB:7.2f} MiB {100 * rest / own if own else 0:7.3f} %  growth {vague / MIB:6.2f}  "
                  f"{'' if holds else 'TOO MUCH'}")
        sums = (sum(x["bytes"] for x in d["by_library"]), sum(x["bytes"] for x in d["lines"]), d["accounted_bytes"])
        if len(set(sums)) != 1:
            print(f"  {name}: by library {sums[0]}, by line {sums[1]}, accounted {sums[2]}: not the same")
            good = False
        quiet = d["readings"]
        print(f"  {name:17} baseline {d['baseline_bytes']}, neighbours {d['neighbour_bytes']}, {quiet['quiet']} quiet readings, "
              f"{quiet['unquiet']} others, largest unattributed {quiet['largest_unattributed_bytes'] / MIB:.2f} MiB")
    if not seen:
        print(f"  {name}: no device was read")
        return 2
    return 0 if good else 1


def hidden(base_path, hidden_path):
    base, other = devices(base_path), devices(hidden_path)
    if not base or len(base) != len(other):
        return 2
    good, most = True, 0
    for a, b in zip(base, other):
        for x, y in zip(readings(a), readings(b)):
            missing = x["accounted_bytes"] - y["accounted_bytes"]
            risen = y["unattributed_bytes"] - x["unattributed_bytes"]
            same_use = x["own_used_bytes"] == y["own_used_bytes"]
            # What the hook would have recorded: blocks and the pages they share, or the pool's or managed memory's own line.
            lines = sum(x[k] - y[k] for k in ("blocks_bytes",))
            lines += sum(x["charges"][k] - y["charges"][k] for k in ("shared_pages", "pool_slack", "managed"))
            holds = same_use and risen == missing == lines
            good = good and holds
            most = max(most, risen)
            print(f"  {x['label'] or '':20.20} own {y['own_used_bytes'] / MIB:10.2f}  hidden {lines / MIB:9.2f}  unattributed rose by {risen / MIB:9.2f} MiB "
                  f"{'' if holds else 'NOT THE SAME'}")
    return 0 if good and most > 0 else 1


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "bounds":
        sys.exit(bounds(sys.argv[2], sys.argv[3]))
    if len(sys.argv) == 4 and sys.argv[1] == "hidden":
        sys.exit(hidden(sys.argv[2], sys.argv[3]))
    print(__doc__, file=sys.stderr)
    sys.exit(2)
