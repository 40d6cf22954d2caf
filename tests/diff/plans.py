#!/usr/bin/env python3
"""A plan made from a run, changed so that it no longer fits the program that it names, or fits nothing in it.

    plans.py none PLAN OUT         the same sections, without a row, a tier or a region
    plans.py small PLAN OUT        half the slots, a quarter of each stack and region: too few blocks, too little room
    plans.py others PLAN OUT       each site's row is another site's of the same kind of memory

What is written is a sound plan in itself (the loader checks it): it is only wrong. Exit code 1 where the change leaves it as it was."""
import json
import sys

PAGE = 2 << 20


def total(section):
    """The sum that the loader holds it against."""
    tiers = sum(t["capacity"] * (t.get("streams", 1) if t["discipline"] == "T4" else 1) for t in section["tiers"] if t["family"] != "pinned")
    section["total_bytes"] = section.get("native_bytes", 0) + tiers + sum(c["bytes"] for c in section.get("charges", []))


def none(section):
    changed = bool(section["sites"])
    section["sites"], section["tiers"], section["regions"] = [], [], []
    section.pop("sizing_query", None)
    return changed


def small(section):
    """Of every class of slots the first half; of tiers without slots a quarter, of a region likewise, but its first request."""
    changed = False
    for site in section["sites"]:
        for slot in site.get("slots", []):
            offsets = slot["offsets"]
            slot["offsets"] = offsets[: (len(offsets) + 1) // 2]
            changed |= len(slot["offsets"]) < len(offsets)
        if site["discipline"] == "T3" and site["blocks"] > 1:
            half = (site["blocks"] + 1) // 2
            site["capacity"] = site["capacity"] // site["blocks"] * half
            site["blocks"] = half
            changed = True
    for tier in section["tiers"]:
        if tier["family"] == "handle" and tier["slots"] > 1:
            each, tier["slots"] = tier["capacity"] // tier["slots"], (tier["slots"] + 1) // 2
            tier["capacity"] = each * tier["slots"]
            changed = True
        if tier["discipline"] in ("T2", "T4") and not tier.get("slots"):
            smaller = max(tier["capacity"] // 4 // PAGE * PAGE, PAGE)
            changed |= smaller < tier["capacity"]
            tier["capacity"] = min(smaller, tier["capacity"])
            for site in section["sites"]:
                if site["discipline"] == tier["discipline"] and site["family"] == tier["family"]:
                    site["capacity"] = min(site["capacity"], tier["capacity"])
                    site["blocks"], site["largest"] = 1, min(site["largest"], site["capacity"])
    for region in section["regions"]:
        smaller = max(region["capacity"] // 4, region["first_bytes"])
        changed |= smaller < region["capacity"]
        region["capacity"] = smaller
    return changed


def others(section):
    """Keys go round among the sites of one family; the rows stay in the order of their keys."""
    groups = {}
    for site in section["sites"]:
        if site["discipline"] != "native":
            groups.setdefault((site["family"], site.get("flags", 0)), []).append(site)
    now = {}
    for sites in groups.values():
        names = [{k: s[k] for k in ("key", "coarse_key", "python_key", "python", "frames") if k in s} for s in sites]
        for site, name in zip(sites, names[1:] + names[:1]):
            now[site["key"], site.get("python_key")] = (name["key"], name.get("python_key"))
            for field in ("key", "coarse_key", "python_key", "python", "frames"):
                site.pop(field, None)
            site.update(name)
    for region in section["regions"]:
        key, python = now[region["first_key"], region.get("first_python_key")]
        region["first_key"] = key
        region.pop("first_python_key", None)
        if python is not None:
            region["first_python_key"] = python
    section["sites"].sort(key=lambda s: (s["key"], s.get("python_key", "")))
    return any(was != becomes for was, becomes in now.items())


def main():
    how, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        plan = json.load(f)
    plan.pop("budget", None)
    change, changed = {"none": none, "small": small, "others": others}[how], False
    for section in plan["sections"]:
        changed |= change(section)
        total(section)
    with open(target, "w", encoding="utf-8") as f:
        json.dump(plan, f)
    return 0 if changed else 1


if __name__ == "__main__":
    sys.exit(main())
