"""Makes the campaigns of a small lab out of one simulated campaign: lab.py BASE TO.

Two testbeds measure two variants at two frame lengths: each rate below is the median that the archive must have.
"""

import json
import pathlib
import sys

base, to = map(pathlib.Path, sys.argv[1:])
campaign, host = (json.loads((base / f"{name}.json").read_text()) for name in ("campaign", "host"))
lines = [json.loads(line) for line in (base / "trials.jsonl").read_text().splitlines()]
slots = {(slot["variant"], tuple(map(tuple, slot["levels"]))): slot["id"] for slot in campaign["slots"]}
tester, plain, rules = "tester-baseline", "forwarding", "nft-stateful"
short, long = ((0, 0),), ((0, 1),)

# Testbed, kernel, time, and rates of the tester, of plain forwarding and behind the rules, at 64 bytes.
RUNS = [
    ("apu2", "6.1", "2026-09-01T01:00:00Z", 1000e3, 500e3, 400e3),
    ("apu2", "6.12", "2026-10-01T01:00:00Z", 1010e3, 500e3, 300e3),
    ("apu2", "6.12", "2026-10-02T01:00:00Z", 1020e3, 400e3, 300e3),
    ("xeon", "6.1", "2026-10-01T01:00:00Z", 4000e3, 3000e3, 2000e3),
    ("xeon", "6.12", "2026-10-03T01:00:00Z", 4000e3, 3800e3, 2000e3),
    ("c2758", "6.1", "2026-08-31T23:59:59Z", 100e3, 80e3, 60e3),
]
for number, (machine, kernel, started, *rates) in enumerate(RUNS):
    folder = to / machine / f"run-{number}"
    folder.mkdir(parents=True)
    campaign |= {"name": "nightly", "started": started}
    if number == 5:
        campaign["slots"] = [slot | {"baseline": None} for slot in campaign["slots"]]
    campaign["asked"]["lab"] = "namespaces"
    host |= {"cpu_model": machine, "kernel": kernel}
    host["settings"] = {"net.core.bpf_jit_enable": "0" if number == 2 else "1"}
    wanted = {}
    for variant, rate in zip((tester, plain, rules), rates):
        wanted[slots[variant, short]] = rate
        wanted[slots[variant, long]] = rate / 2
    trials = json.loads(json.dumps(lines))
    for trial in trials:
        rate = wanted[trial["slot"]]
        # One block in three is a thousandth above, one below the median.
        trial["rates"] = {"offered": 2 * rate, "received": rate * (1 + (trial["block"] % 3 - 1) / 1000), "seconds": 0.02}
        if number in (3, 4) and trial["slot"] not in (slots[tester, short], slots[tester, long]):
            trial["generator"]["frames"] = 2 * trial["receiver"]["frames"] - 2
        if number == 3 and trial["block"] == 1:
            trial["audit"]["valid"] = False
            trial["audit"]["checks"][1] |= {"ok": False, "found": f"{trial['slot']} of {number}"}
    (folder / "campaign.json").write_text(json.dumps(campaign))
    (folder / "host.json").write_text(json.dumps(host))
    (folder / "trials.jsonl").write_text("".join(json.dumps(trial) + "\n" for trial in trials))
