#!/usr/bin/env python3
"""Recomputes what is printed of two suites from exported rows and traces, in formulas of its own, and names what differs.

    scripts/compare/recompute.py --binary build/worker/swerve
    scripts/compare/recompute.py --binary build/worker/swerve --every 1
    scripts/compare/recompute.py --binary build/worker/swerve --store A.db --store B.db

Without --store it drives a suite with two planners. From the rows of `swerve export` it recomputes each number of
`report --json` and `compare --json`: counts, rates and their intervals, by slice and parameter, scores of the field,
the guardian, meters, the ledger, tests and mean differences; and the lines of the terminal's tables. From the trace of
each --every'th drive it recomputes the row: contacts, distances, time to collision, comfort, progress, the drivable
area, the score, and which criteria are not met. Ends with 1 where anything differs, and says what was not recomputed.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

from recompute_drive import Drive, Road, reasons, score
from recompute_rates import difference, holm, logical_of, mean_difference, parameters_of, rate, sign_test

CLOSE = 1e-9
LATER = 1e-3
SLICES = ("scenario_type", "road", "weather", "light", "actor", "geography")
MEASURES = {"score": 1.0, "progress": 1.0, "comfort": 1.0, "min_distance_m": math.inf, "min_ttc_s": 3.0,
            "jerk_max_mps3": math.inf, "pdms": 1.0, "epdms": 1.0}
OF_TRACES = ("ticks", "distance_m", "metres_mm", "speed_max_mps", "min_distance_m", "min_ttc_s", "ttc", "collision_count",
             "collision_tick", "collision_agent", "collision_kind", "impact_speed_mps", "at_fault", "no_at_fault_collision",
             "comfort", "accel_min_mps2", "jerk_max_mps3", "drivable_area", "driving_direction", "speed_limit", "progress_m",
             "progress", "making_progress", "lane_keeping", "goal_reached", "intervention_count", "score", "reasons", "verdict")
NOT_IN_TRACES = {"red_light", "stop_sign", "cost"}
METRES_PER_MILE = 1609.344
VERDICTS = {"passed": "pass", "failed": "fail", "flagged": "flagged", "invalid": "invalid", "errors": "planner_error"}


class Account:
    """Numbers that were compared, that differ, that were left out."""

    def __init__(self):
        self.compared, self.different, self.left_out, self.largest = 0, [], {}, 0.0

    def number(self, place, ours, theirs):
        self.compared += 1
        if isinstance(ours, float) and isinstance(theirs, (int, float)) and math.isfinite(ours):
            gap = abs(ours - theirs) / max(1.0, abs(theirs))
            self.largest = max(self.largest, gap if gap <= CLOSE else 0.0)
            same = gap <= CLOSE
        else:
            same = ours == theirs
        if not same:
            self.different.append(f"{place}: expected {ours}, found {theirs}")

    def tree(self, place, ours, theirs):
        """Each number and text of theirs against ours; what ours lacks is left out."""
        if isinstance(theirs, dict) and isinstance(ours, dict):
            for name, value in theirs.items():
                at = f"{place}.{name}" if place else name
                if name in ours:
                    self.tree(at, ours[name], value)
                else:
                    self.leave(name)
            for name in ours.keys() - theirs.keys():
                self.different.append(f"{place}.{name}: expected {ours[name]}, found nothing")
        elif isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
            for at, pair in enumerate(zip(ours, theirs)):
                self.tree(f"{place}[{at}]", *pair)
        else:
            self.number(place, ours, theirs)

    def leave(self, name):
        self.left_out[name] = self.left_out.get(name, 0) + 1


# ---- rows ----

class Store:
    def __init__(self, binary, path):
        self.binary, self.path = binary, path
        head, *lines = [json.loads(line) for line in self.run("export", "--format", "jsonl", "--field").splitlines()]
        names = [column["name"] for column in head["columns"]]
        self.rows = [dict(zip(names, line)) for line in lines]
        for row in self.rows:
            for name, value in row.items():
                row[name] = math.inf if value == "inf" else value
        prices = [line.split() for line in self.run("price", "ls").splitlines()]
        self.prices = {(line[0], line[1]): float(line[2].lstrip("$")) for line in prices}

    def run(self, *arguments):
        command = [self.binary, *arguments, "--store", self.path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def usd(self, row):
        device = "cuda" if row["backend"].startswith("cuda") else "cpu"
        return row["device_ns"] / 3.6e12 * self.prices[row["pool"], device]

    def results(self):
        return [row for row in self.rows if not row["audit_of"] and not row["shadow"]]


def is_main(row):
    return row["branch_id"] == ""


def is_judged(row):
    return is_main(row) and row["verdict"] in ("pass", "fail", "planner_error")


def drive_of(row, value):
    return row["logical_scenario"], (row["scenario_hash"], row["planner"]), value


def pass_rate(rows):
    """Of main lines; flagged ones have no value, invalid ones are none."""
    return rate(drive_of(row, None if row["verdict"] == "flagged" else row["verdict"] == "pass")
                for row in rows if is_main(row) and row["verdict"] != "invalid")


def shown_rate(found):
    out = {name: found[name] for name in ("drives", "scenarios", "logical_scenarios", "low", "high")}
    if "rate" in found:
        out["rate"] = found["rate"]
    if found["missing"]:
        out.update(flagged=found["missing"], if_flagged_fail=found["worst"], if_flagged_pass=found["best"])
    return out


def part(rows, store):
    """One row of a summary."""
    mains = [row for row in rows if is_judged(row)]
    results = [row for row in rows if row["verdict"] != "flagged"]
    miles = sum(row["metres_mm"] for row in results) / 1e3 / METRES_PER_MILE
    usd = float(sum(store.usd(row) for row in results))
    out = {"rollouts": len(rows), "main_rollouts": len(mains), "main_passed": sum(row["verdict"] == "pass" for row in mains),
           "ticks": sum(row["ticks"] - row["prefix_ticks"] for row in results), "miles": miles, "usd": usd,
           "pass_rates": {}}
    for name, verdict in VERDICTS.items():
        out[name] = sum(row["verdict"] == verdict for row in rows)
    for tier in sorted({row["tier"] for row in rows if is_main(row) and row["verdict"] != "invalid"}):
        out["pass_rates"][tier] = shown_rate(pass_rate([row for row in rows if row["tier"] == tier]))
    rates = [found for found in out["pass_rates"].values() if found["drives"]]
    if len(rates) == 1:
        out.update(pass_rate=rates[0]["rate"], pass_rate_low=rates[0]["low"], pass_rate_high=rates[0]["high"])
    if miles > 0:
        out["usd_per_mile"] = usd / miles
    return out


def grouped(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def by(rows, store, key):
    return {value: part(group, store) for value, group in grouped(rows, key).items()}


def by_parameter(rows, store):
    values = {}
    for row in rows:
        for name, value in parameters_of(row["scenario_id"]):
            values.setdefault(name, {}).setdefault(value, []).append(row)
    return {name: {value: part(group, store) for value, group in found.items()} if len(found) <= 64 else {}
            for name, found in values.items() if len(found) > 1}


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def pdms(row):
    return row["no_at_fault_collision"] * row["drivable_area"] * (
        5 * row["progress"] + 5 * row["ttc"] + 2 * row["comfort"]) / 12


def epdms(row):
    whole = 5 * row["progress"] + 5 * row["ttc"] + 2 * row["lane_keeping"] + 2 * row["comfort"]
    weight = 14
    if row["extended_comfort"] is not None:
        whole, weight = whole + 2 * row["extended_comfort"], 16
    return row["no_at_fault_collision"] * row["drivable_area"] * row["driving_direction"] * row["traffic_light"] * whole / weight


def field(rows):
    out = {}
    for tier, group in grouped([row for row in rows if is_main(row) and row["verdict"] in ("pass", "fail")],
                               lambda row: row["tier"]).items():
        km = sum(row["distance_m"] for row in group) / 1e3
        planned = [row["extended_comfort"] for row in group if row["extended_comfort"] is not None]
        out[tier] = {"drives": len(group), "km": km, "nuplan_score": mean(row["score"] for row in group),
                     "collisions_per_1000_km": sum(row["collision_count"] for row in group) / km * 1e3,
                     "at_fault_drives_per_1000_km": sum(row["at_fault"] for row in group) / km * 1e3,
                     "pdms": mean(map(pdms, group)), "epdms": mean(map(epdms, group)),
                     "extended_comfort": mean(planned), "extended_comfort_drives": len(planned)}
    return out


def guardian(rows):
    out = {}
    for tier, group in grouped(filter(is_judged, rows), lambda row: row["tier"]).items():
        out[tier] = {name: shown_rate(rate(drive_of(row, row["intervention_count"] > 0) for row in group
                                           if (row["verdict"] == "pass") == passing))
                     for name, passing in (("fires_in_failing", False), ("fires_in_passing", True))}
    return out


def quantiles(values):
    """Nearest rank."""
    values = sorted(values)
    return {name: values[max(1, math.ceil(share * len(values))) - 1] for name, share in
            (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}


def meters(rows, store):
    out = []
    groups, whole = (grouped(some, lambda row: (row["pool"], row["backend"], row["tier"], row["model_hash"], row["sampler"]))
                     for some in ([row for row in rows if row["ticks"] > row["prefix_ticks"] and row["device_ns"] > 0], rows))
    for key, group in sorted(groups.items()):
        seconds = sum(row["device_ns"] for row in group) / 1e9
        miles = sum(row["metres_mm"] for row in group) / 1e3 / METRES_PER_MILE
        out.append(dict(zip(("pool", "device", "tier", "model", "sampler"), key)) | {
            "rollouts": len(whole[key]), "miles": miles, "device_s": seconds, "miles_per_device_hour": miles / seconds * 3600,
            "usd_per_mile": sum(map(store.usd, group)) / miles,
            "tick_ms": quantiles(row["device_ns"] / 1e6 / (row["ticks"] - row["prefix_ticks"]) for row in group),
            "rollout_s": quantiles(row["device_ns"] / 1e9 for row in group)})
    return out


def ledger(rows, store, shown):
    """Bookings of jobs that all ended in a result, as whole micro-dollars of what they cost together. What is shown may
    have a little more device time than rows: a tick in which all rollouts end is charged to a job, and where its outcomes
    were kept before, they do not have it."""
    out = []
    for (pool, device, tier), group in sorted(grouped(rows, lambda row: (row["pool"], row["backend"], row["tier"])).items()):
        device_ns = sum(row["device_ns"] for row in group)
        charged = [line["device_ns"] for line in shown if (line["pool"], line["device"], line["tier"]) == (pool, device, tier)]
        if len(charged) == 1 and 0 < charged[0] - device_ns <= device_ns * LATER:
            device_ns = charged[0]
        out.append({"pool": pool, "device": device, "tier": tier, "end": "done", "audit": False, "shadow": False,
                    "attempts": len({row["job_id"] for row in group}), "device_ns": device_ns,
                    "metres_mm": sum(row["metres_mm"] for row in group), "mflop": sum(row["mflop"] for row in group),
                    "cost_uusd": math.floor(device_ns / 3.6e6 * store.prices[pool, device] + 1e-6)})
    return out


def report(store, shown):
    """The tree of `swerve report --json` as far as rows have it."""
    rows = store.results()
    out = part(rows, store)
    tiers = by(rows, store, lambda row: row["tier"])
    saved = 0.0
    for tier, found in tiers.items():
        group = [row for row in rows if row["tier"] == tier]
        results, caught = ([row for row in group if (row["verdict"] == "flagged") == flagged] for flagged in (False, True))
        found["device_ns"] = sum(row["device_ns"] for row in results)
        found["tflop"] = sum(row["mflop"] for row in results) / 1e6
        found["flagged_work"] = {"ticks": sum(row["ticks"] - row["prefix_ticks"] for row in caught), "usd": float(sum(map(
            store.usd, caught)))} | {name: sum(row[name] for row in caught) for name in ("metres_mm", "device_ns")}
        saved += found["usd"] / found["ticks"] * sum(row["prefix_ticks"] for row in group) if found["ticks"] else 0.0
    bill = ledger(rows, store, shown["ledger"])
    slices = {name: by(rows, store, lambda row, at=f"slice_{name}": row[at]) for name in SLICES}
    slices["safety_critical"] = by(rows, store, lambda row: "true" if row["safety_critical"] else "false")
    slices["given"] = by(rows, store, lambda row: row["given"])
    invalid = grouped([row for row in rows if row["verdict"] == "invalid"], lambda row: row["health_check"])
    out.update(
        prefix_ticks_saved=sum(row["prefix_ticks"] for row in rows), prefix_usd_saved=saved,
        guardian_interventions=sum(row["intervention_count"] for row in rows if is_main(row) and row["verdict"] != "invalid"),
        invalid_checks={check: len(group) for check, group in invalid.items()}, field=field(rows), guardian=guardian(rows),
        dead_jobs=0, unfinished_jobs=0, cancelled_jobs=0, memoised_jobs=0, audit_rollouts=0,
        billed_usd=sum(line["cost_uusd"] for line in bill) / 1e6, by_slice=slices, by_parameter=by_parameter(rows, store),
        by_tier=tiers, by_planner=by(rows, store, lambda row: row["planner"]), by_model={}, ledger=bill,
        meters=meters(rows, store), outcomes=[row["id"] for row in rows])
    return out


# ---- two sides ----

def compared_rows(pairs):
    """Counts, rates and the test of pairs of main lines."""
    gains, losses, net = [], [], {}
    for a, b, cluster in pairs:
        step = (b["verdict"] == "pass") - (a["verdict"] == "pass")
        case = a["scenario_id"]
        gains.append((cluster, case, step > 0))
        losses.append((cluster, case, step < 0))
        net.setdefault(cluster, {}).setdefault(case, []).append(step)
    signs = [sum((sum(steps) > 0) - (sum(steps) < 0) for steps in cases.values()) for cases in net.values()]
    between = difference(rate(gains), rate(losses))
    p = sign_test(signs)
    if p >= 0.05:
        between.update(low=min(between["low"], 0.0), high=max(between["high"], 0.0))
    sides = [rate((cluster, pair[0]["scenario_id"], pair[side]["verdict"] == "pass") for *pair, cluster in pairs)
             for side in (0, 1)]
    return {"main_lines": len(pairs), "fixed": sum(value for *_, value in gains), "broken": sum(value for *_, value in losses),
            "a": {name: sides[0][name] for name in ("rate", "low", "high")},
            "b": {name: sides[1][name] for name in ("rate", "low", "high")}, "difference": between, "p": p}, \
        sum(sign != 0 for sign in signs)


def measure_of(row, name):
    if name == "pdms":
        return pdms(row)
    if name == "epdms":
        return epdms(row)
    return min(row[name], 3.0) if name == "min_ttc_s" else row[name]


def compared_measure(pairs, name, most):
    cases = {}
    for a, b, cluster in pairs:
        values = [measure_of(row, name) for row in (a, b)]
        if all(row["verdict"] != "planner_error" for row in (a, b)) and all(map(math.isfinite, values)):
            cases.setdefault((cluster, a["scenario_id"]), []).append(values)
    means = {case: [mean(value[side] for value in values) for side in (0, 1)] for case, values in cases.items()}
    clusters = {}
    for (cluster, _), (a, b) in means.items():
        clusters.setdefault(cluster, []).append(0.0 if abs(b - a) <= CLOSE * max(1.0, abs(a)) else b - a)
    return {"scenarios": len(means), "a": mean(a for a, _ in means.values()), "b": mean(b for _, b in means.values()),
            "difference": mean_difference(list(clusters.values()), most)}


def whole_side(own, other, wanted):
    """Main lines of a side, and its rate had what has no result failed, or passed."""
    mains = [own[key] for key in wanted if key in own]
    found = rate((logical_of(key[0]), key[0], own[key]["verdict"] == "pass" if key in own and own[key]["verdict"] in (
        "pass", "fail", "planner_error") else None) for key in wanted)
    return {"missing": len(wanted) - len(mains), "rate": found.get("rate"), "if_missing_fail": found["worst"],
            "if_missing_pass": found["best"],
            "changed": sum(key in other and row["scenario_hash"] != other[key]["scenario_hash"] for key, row in own.items()
                           if key[1] == "")} | {
        verdict: sum(row["verdict"] == verdict for row in mains)
        for verdict in ("pass", "fail", "planner_error", "flagged", "invalid")}


def change(x, y):
    passed = [row["verdict"] == "pass" for row in (x, y)]
    return "" if passed[0] == passed[1] else "broken" if passed[0] else "fixed"


def compare(a, b):
    """The tree of `swerve compare --json`."""
    def keyed(store):
        return {(row["scenario_id"], row["branch_id"], row["seed"], row["tier"]): row for row in store.results()}
    left, right = keyed(a), keyed(b)
    both = sorted(left.keys() & right.keys())
    same = [key for key in both if left[key]["scenario_hash"] == right[key]["scenario_hash"]]
    judged = [key for key in same if all(side[key]["verdict"] not in ("invalid", "flagged") for side in (left, right))]
    pairs = [(left[key], right[key]) for key in judged]
    mains = [(x, y, logical_of(x["scenario_id"])) for x, y in pairs if is_main(x)]
    alone = len({cluster for *_, cluster in mains}) < 6
    if alone:
        mains = [(x, y, x["scenario_id"]) for x, y, _ in mains]
    whole, _ = compared_rows(mains)
    groups = {(name, x[f"slice_{name}"]): [] for name in SLICES for x, *_ in mains}
    groups |= {("world", x["tier"]): [] for x, *_ in mains}
    groups |= {("safety_critical", "true"): [] for x, *_ in mains if x["safety_critical"]}
    for pair in mains:
        for name in SLICES:
            groups[name, pair[0][f"slice_{name}"]].append(pair)
        groups["world", pair[0]["tier"]].append(pair)
        if pair[0]["safety_critical"]:
            groups["safety_critical", "true"].append(pair)
    slices, tests = [], []
    for (group, value), members in sorted(groups.items()):
        row, changed = compared_rows(members)
        slices.append({"group": group, "value": value} | row)
        tests.append((None if len(members) == len(mains) else row["p"], changed))
    for row, p in zip(slices, holm(tests)):
        row["p"] = p
    branches = [(x, y) for x, y in pairs if not is_main(x)]
    steps = [(y["verdict"] == "pass") - (x["verdict"] == "pass") for x, y in branches]
    wanted = sorted(key for key in left.keys() | right.keys() if key[1] == "")
    lost = [key for key in wanted if key in left and left[key]["verdict"] == "pass" and (
        key not in right or right[key]["verdict"] in ("invalid", "flagged"))]
    flips = [(x, y) for main in (True, False) for word in ("broken", "fixed") for x, y in pairs
             if is_main(x) == main and change(x, y) == word]
    return {"a": {"rollouts": len(left), "superseded": 0}, "b": {"rollouts": len(right), "superseded": 0},
            "main_lines": {"a": whole_side(left, right, wanted), "b": whole_side(right, left, wanted)},
            **({} if lost else {"lost": []}),
            "flips": [{"scenario_id": x["scenario_id"], "branch_id": x["branch_id"], "seed": x["seed"], "world": x["tier"],
                       "change": change(x, y), "outcome_a": x["id"], "verdict_a": x["verdict"], "outcome_b": y["id"],
                       "verdict_b": y["verdict"]} for x, y in flips],
            "compared": len(pairs), "only_a": len(left) - len(both), "only_b": len(right) - len(both),
            "changed": len(both) - len(same), "no_result": len(same) - len(judged),
            "cluster": "scenario" if alone else "logical_scenario", "all": {"group": "all", "value": ""} | whole,
            "slices": slices, "measures": {name: compared_measure(mains, name, most) for name, most in MEASURES.items()},
            "branches": {"compared": len(branches), "fixed": steps.count(1), "broken": steps.count(-1)}}


# ---- lines of the terminal ----

def outwards(low, high, step):
    return math.floor(low / step + CLOSE) * step + 0.0, math.ceil(high / step - CLOSE) * step + 0.0


def terminal(account, text, groups, words):
    """Each row of the tables of a terminal has the words that its numbers make."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for name, found in groups:
        wanted = words(found)
        account.compared += 1
        if not any(line.startswith(name + " ") and wanted in line for line in lines):
            account.different.append(f"terminal, {name}: expected {wanted}")


def rate_words(found):
    low, high = outwards(100 * found["pass_rate_low"], 100 * found["pass_rate_high"], 1)
    return " ".join(f"{100 * found['pass_rate']:5.1f}% [{low:3.0f}-{high:3.0f}]".split())


def difference_words(row):
    low, high = outwards(100 * row["difference"]["low"], 100 * row["difference"]["high"], 0.1)
    return " ".join(f"{100 * row['difference']['value']:+.1f} [{low:+6.1f}, {high:+6.1f}]".split())


# ---- traces ----

def recompute_row(account, row, found, criteria):
    """Compares the row of a drive with what its trace gives."""
    place = f"{row['scenario_id']} {row['branch_id'] or 'main line'}"
    known = found.copy()
    known["metres_mm"] = None
    if row["prefix_ticks"] == 0:
        known["metres_mm"] = math.floor(known["distance_m"] * 1e3 + 0.5)
    if "progress" not in known:  # the route changes lanes: taken from the row
        known.update({name: row[name] for name in ("progress_m", "progress", "making_progress", "lane_keeping", "goal_reached")
                      if name not in known})
        account.leave("places along routes that change lanes")
    known["score"] = score(known)
    of_signals = set(filter(None, row["reasons"].split(";"))) & NOT_IN_TRACES
    known["reasons"] = ";".join(sorted(reasons(known, criteria) | of_signals))
    known["verdict"] = "fail" if known["reasons"] else "pass"
    for name in OF_TRACES:
        theirs = ";".join(sorted(row[name].split(";"))) if name == "reasons" else row[name]
        if name == "metres_mm" and known[name] is None:
            continue
        if name in ("reasons", "verdict") and row["verdict"] not in ("pass", "fail"):
            account.leave("verdicts of invalid drives")
            continue
        account.number(f"{place}: {name}", known[name], theirs)


def traces(account, store, every):
    roads, drives = {}, 0
    for row in store.results()[::every]:
        key = row["scenario_hash"]
        if key not in roads:
            scenario = json.loads(store.run("show", str(row["id"]), "--scenario"))
            roads[key] = scenario, Road(scenario)
        lines = [json.loads(line) for line in store.run("show", str(row["id"]), "--trace").splitlines()]
        scenario, road = roads[key]
        found = Drive(scenario, road, [line for line in lines if "x_m" in line]).metrics()
        recompute_row(account, row, found, scenario["criteria"])
        drives += 1
    return drives


# ---- the whole ----

def made(options, folder):
    paths = []
    for planner in options.planner or ["builtin:idm", "guarded+builtin:idm"]:
        paths.append(os.path.join(folder, f"{len(paths)}.db"))
        subprocess.run([options.binary, "run", options.suite, "--world", "object", "--planner", planner, "--store",
                        paths[-1]], capture_output=True, check=False)
    return paths


def check(options, paths):
    account = Account()
    stores = [Store(options.binary, path) for path in paths]
    drives = 0
    for store in stores:
        shown = json.loads(store.run("report", "--json"))
        found = report(store, shown)
        account.tree("report", found, shown)
        groups = [(value, row) for group in found["by_slice"].values() for value, row in group.items() if "pass_rate" in row]
        terminal(account, store.run("report"), [*groups, ("total", found)], rate_words)
    drives = traces(account, stores[0], options.every)
    if len(stores) > 1:
        found = compare(*stores[:2])
        arguments = ["compare", *paths[:2]]
        shown = subprocess.run([options.binary, *arguments, "--json"], capture_output=True, text=True, check=True)
        account.tree("compare", found, json.loads(shown.stdout))
        shown = subprocess.run([options.binary, *arguments], capture_output=True, text=True, check=True)
        changed = [row for row in found["slices"] if 0 < row["fixed"] + row["broken"] and row["main_lines"] < found["all"]["main_lines"]]
        terminal(account, shown.stdout, [("all", found["all"]), *((f"{row['group']} {row['value']}", row) for row in changed)],
                 difference_words)
    rows = [len(store.results()) for store in stores]
    print(f"{' and '.join(map(str, rows))} rows, {drives} traces: {account.compared} numbers and texts recomputed, "
          f"{len(account.different)} differ; the largest difference within the tolerance of {CLOSE:g} is {account.largest:.1g}")
    if account.left_out:
        print("not recomputed: " + ", ".join(f"{name} ({count})" for name, count in sorted(account.left_out.items())))
    for line in account.different[:40]:
        print(line)
    return 1 if account.different or not drives else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/worker/swerve")
    parser.add_argument("--suite", default="scenarios/longtail.json", help="what is driven without --store")
    parser.add_argument("--planner", action="append", help="who drives it, twice for compare (builtin:idm, guarded+builtin:idm)")
    parser.add_argument("--store", action="append", help="a store with one suite of one planner in the object world")
    parser.add_argument("--every", type=int, default=10, help="drives from whose traces rows are recomputed: one in so many")
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory() as folder:
        return check(options, options.store or made(options, folder))


if __name__ == "__main__":
    sys.exit(main())
