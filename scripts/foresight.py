#!/usr/bin/env python3
"""Foresight on drawn maps: vehicles that `foresee` moves, beside what became of them and base lines.

    scripts/foresight.py build/worker/swerve [--scenes N] [--seed N] [--keep FOLDER] [--json] [--rows]
                         [--tokens FILE [--samples N]]

Each scene is a map of its family drawn from a seed (radii, arms, lanes, lights, signs), with 8 to 24
vehicles whose drivers, routes and speeds are drawn too; one in eight follows a script that brakes or
speeds up. The object world drives it for START_S; what happens in the 5 s after that becomes
a recording, and `swerve correlate` says how far the foreseen vehicles, which know the first tick of
the recording alone, are from it. Acceleration and turn of the base line are those of that tick.

The drivers are synthetic: that IDM is near to drivers who are IDM with other parameters, other routes
and lane changes says nothing of people.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

from make_maps import KPH, Map, arc, hermite, integrate, parallel_lanes, straight, turned, two_way

START_S, RECORDED_S = 4.0, 5.2
SPACE_M = 14.0  # between vehicles of a lane at the start
ROUTE_M = 400.0
WIDTH_M = 3.5


# ---- families of maps ----

def lanes_beside(m, prefix, count, x0, x1, y, limit):
    """Straight lanes from x0 to x1, the rightmost at y; their ids, from the right."""
    parallel_lanes(m, prefix, count, WIDTH_M, [(x0, y, 0.0), (x1, y, 0.0)], limit)
    return [f"{prefix}_{i}" for i in range(count)]


def bend(draw):
    """A two-way road in an S of two radii."""
    m = Map("bend")
    one, two = draw.uniform(60, 260), draw.uniform(60, 260)
    sign = draw.choice((-1, 1))

    def curvature(s):
        return sign / one if 100 < s < 200 else -sign / two if 240 < s < 340 else 0.0
    limit = min(80 * KPH, math.sqrt(2.0 * min(one, two)))
    two_way(m, integrate(curvature, 560, every_m=2), 3.4, limit)
    return m, []


def carriageway(draw):
    """Two to four lanes one way, straight or in a wide bend."""
    m = Map("carriageway")
    radius = draw.choice((math.inf, draw.uniform(300, 900)))
    parallel_lanes(m, "lane", draw.randint(2, 4), WIDTH_M,
                   integrate(lambda s: 1 / radius if s > 150 else 0.0, 900),
                   draw.choice((80, 100, 120)) * KPH)
    return m, []


def merge(draw):
    """A carriageway and a road that runs into its right lane."""
    m = Map("merge")
    limit, count = draw.choice((80, 100)) * KPH, draw.randint(1, 3)
    before = lanes_beside(m, "before", count, -200.0, 120.0, 0.0, limit)
    after = lanes_beside(m, "after", count, 120.0, 520.0, 0.0, limit)
    for a, b in zip(before, after):
        m.follow(a, b)
    angle = math.radians(draw.uniform(4, 14))
    start = (-60 - 140 * math.cos(angle), -30 - 140 * math.sin(angle))
    knee = (-60.0, -30.0)
    m.lane("ramp", [start, knee], 3.5, 60 * KPH)
    m.lane("slip", hermite(knee, angle, (120.0, 0.0), 0.0), 3.5, limit, junction=True)
    m.follow("ramp", "slip", "after_0")
    return m, [{"id": "give_way", "lanes": ["slip"], "sign": "give_way", "stop_m": 30}]


def split(draw):
    """A carriageway whose right lane parts into an exit."""
    m = Map("split")
    limit, count = draw.choice((60, 80, 100)) * KPH, draw.randint(1, 3)
    before = lanes_beside(m, "before", count, -250.0, 60.0, 0.0, limit)
    after = lanes_beside(m, "after", count, 60.0, 460.0, 0.0, limit)
    angle = math.radians(-draw.uniform(10, 45))
    end = (60 + 70 * math.cos(angle / 2), 70 * math.sin(angle / 2))
    exit_mps = draw.choice((40, 60)) * KPH
    m.lane("leave", hermite((60.0, 0.0), 0.0, end, angle), 3.5, exit_mps, junction=True)
    m.lane("off", [end, (end[0] + 250 * math.cos(angle), end[1] + 250 * math.sin(angle))], 3.5,
           exit_mps)
    for a, b in zip(before, after):
        m.follow(a, b)
    m.follow("before_0", "leave", "off")
    return m, []


def crossing(draw):
    """Three or four arms with lights, stop or yield signs, or none."""
    m = Map("crossing")
    count = draw.choice((3, 4, 4))
    degrees = [90 * i + draw.uniform(-12, 12) for i in range(4)][:count]
    half, limit = draw.uniform(11, 15), draw.choice((40, 50, 60)) * KPH
    for i, deg in enumerate(degrees):
        m.lane(f"in_{i}", turned(straight(200, 1.75, half, 1.75), deg), limit=limit,
               marks=("dashed", "solid"))
        m.lane(f"out_{i}", turned(straight(half, -1.75, 200, -1.75), deg), limit=limit,
               marks=("dashed", "solid"))
        m.opposite(f"in_{i}", f"out_{i}")
    for i, a in enumerate(degrees):
        for k, b in enumerate(degrees):
            if i == k:
                continue
            turn = (b - a + 180 + 180) % 360 - 180
            m.lane(f"way_{i}_{k}",
                   hermite(turned([(half, 1.75)], a)[0], math.radians(a + 180),
                           turned([(half, -1.75)], b)[0], math.radians(b)),
                   limit=limit if abs(turn) < 30 else 28 * KPH, marks=("none", "none"),
                   junction=True)
            m.follow(f"in_{i}", f"way_{i}_{k}", f"out_{k}")
    for lane in m.lanes.values():
        lane["successors"] = list(dict.fromkeys(lane["successors"]))
    m.drivable.append([(round(x, 3), round(y, 3)) for deg in degrees
                       for x, y in turned([(half, -3.5), (half, 3.5)], deg)])
    return m, crossing_signals(draw, count)


def crossing_signals(draw, count):
    kind = draw.choice(("lights", "lights", "stop", "yield", "give_way_right"))
    signals = []
    for i in range(count):
        signal = {"id": f"signal_{i}", "lanes": [f"in_{i}"]}
        if kind == "lights":
            green, red = draw.uniform(8, 15), draw.uniform(8, 15)
            first = [{"light": "green", "duration_s": round(green, 1)},
                     {"light": "yellow", "duration_s": 3}, {"light": "red", "duration_s": round(red, 1)}]
            signal.update(phases=first, offset_s=round(draw.uniform(0, 20), 1))
        elif kind == "give_way_right":
            signal["sign"] = kind
        elif i % 2 == 0:
            signal["sign"] = "priority"
        else:
            signal["sign"] = kind
        signals.append(signal)
    return signals


def roundabout(draw, radius=(14, 30)):
    """Three to five arms about a ring of one lane."""
    m = Map("roundabout")
    radius, count = draw.uniform(*radius), draw.choice((3, 4, 5))
    half = math.degrees(9.0 / radius)  # from an arm's middle to its entry and exit
    reach = radius + 26
    step = 360 / count

    def on_ring(deg):
        return radius * math.cos(math.radians(deg)), radius * math.sin(math.radians(deg))
    ring_mps = math.sqrt(2.0 * radius)
    for i in range(count):
        deg = step * i
        m.lane(f"in_{i}", turned(straight(200, 1.75, reach, 1.75), deg), limit=50 * KPH,
               marks=("dashed", "solid"))
        m.lane(f"out_{i}", turned(straight(reach, -1.75, 200, -1.75), deg), limit=50 * KPH,
               marks=("dashed", "solid"))
        m.opposite(f"in_{i}", f"out_{i}")
        m.lane(f"entry_{i}", hermite(turned([(reach, 1.75)], deg)[0], math.radians(deg + 180),
                                     on_ring(deg + half), math.radians(deg + half + 90)), 4.0,
               30 * KPH, junction=True)
        m.lane(f"exit_{i}", hermite(on_ring(deg - half), math.radians(deg - half + 90),
                                    turned([(reach, -1.75)], deg)[0], math.radians(deg)), 4.0,
               30 * KPH, junction=True)
        m.lane(f"pass_{i}", arc((0, 0), radius, deg - half, deg + half, 4), 5.0, ring_mps,
               junction=True)
        m.lane(f"ring_{i}", arc((0, 0), radius, deg + half, deg + step - half, 4), 5.0, ring_mps,
               junction=True)
    for i in range(count):
        after = (i + 1) % count
        m.follow(f"in_{i}", f"entry_{i}", f"ring_{i}", f"pass_{after}", f"ring_{after}")
        m.follow(f"ring_{i}", f"exit_{after}", f"out_{after}")
    for lane in m.lanes.values():
        lane["successors"] = list(dict.fromkeys(lane["successors"]))
    return m, [{"id": f"yield_{i}", "lanes": [f"entry_{i}"], "sign": "yield", "stop_m": 3}
               for i in range(count)]


def drop(draw):
    """Two or three lanes of which the right one ends."""
    m = Map("drop")
    limit, count = draw.choice((60, 80)) * KPH, draw.randint(2, 3)
    before = lanes_beside(m, "before", count, -250.0, 0.0, 0.0, limit)
    after = lanes_beside(m, "after", count - 1, 60.0, 460.0, WIDTH_M, limit)
    m.lane("taper", hermite((0.0, 0.0), 0.0, (60.0, WIDTH_M), 0.0), WIDTH_M, limit, junction=True)
    m.follow("before_0", "taper", "after_0")
    for i in range(1, count):
        m.lane(f"through_{i}", straight(0, i * WIDTH_M, 60, i * WIDTH_M), WIDTH_M, limit, junction=True)
        m.follow(before[i], f"through_{i}", after[i - 1])
    m.lanes["taper"]["successors"] = ["after_0"]
    return m, [{"id": "give_way", "lanes": ["taper"], "sign": "give_way", "stop_m": 40}]


FAMILIES = {f.__name__: f for f in (bend, carriageway, merge, split, drop, crossing, roundabout)}


# ---- scenes ----

def length_m(lane):
    return sum(math.dist(a, b) for a, b in zip(lane["points"], lane["points"][1:]))


def route(draw, m, lane, s_m):
    """A way through the map; at each parting any of the lanes."""
    out, way = [lane], length_m(m.lanes[lane]) - s_m
    while way < ROUTE_M and m.lanes[lane]["successors"]:
        lane = draw.choice(m.lanes[lane]["successors"])
        out.append(lane)
        way += length_m(m.lanes[lane])
    return out


def vehicle(draw, m, index, lane, s_m):
    limit = m.lanes[lane]["limit"]
    kind = draw.choices(("car", "van", "truck", "bus", "motorcycle"), (70, 12, 8, 4, 6))[0]
    out = {"id": f"v{index}", "kind": kind, "pose": {"lane": lane, "s_m": round(s_m, 2)},
           "speed_mps": round(limit * draw.uniform(0.5, 1.0), 2)}
    if draw.random() < 1 / 8:
        speed = round(limit * draw.choice((0.2, 0.5, 1.15)), 2)
        return dict(out, behaviour="script", manoeuvres=[
            {"when": "time", "value": round(draw.uniform(3, 7), 1), "do": "speed",
             "speed_mps": speed, "rate_mps2": round(draw.uniform(1, 3.5), 1)}])
    out["behaviour"] = "idm"
    out["idm"] = {
        "desired_speed_mps": round(limit * draw.uniform(0.75, 1.2), 2),
        "time_headway_s": round(draw.uniform(0.8, 2.2), 2),
        "min_gap_m": round(draw.uniform(1.5, 3.5), 2),
        "accel_max_mps2": round(draw.uniform(0.8, 2.4), 2),
        "decel_comfort_mps2": round(draw.uniform(1.5, 3.0), 2),
        "politeness": round(draw.uniform(0, 0.5), 2)}
    chosen = route(draw, m, lane, s_m)
    if len(chosen) > 1 or not any(m.lanes[lane][side] for side in ("left", "right")) \
            or m.lanes[lane]["opposite"]:
        out["route"] = chosen
    return out


def scene(family, seed):
    draw = random.Random(f"{family} {seed}")
    m, signals = FAMILIES[family](draw)
    m.check()
    document = m.document()
    if signals:
        document["signals"] = signals
    places = []
    for lane in m.lanes.values():
        if lane["kind"] != "driving":
            continue
        ahead_m = 8.0 if lane["successors"] else lane["limit"] * (START_S + RECORDED_S)
        s_m, end = 8.0 + draw.uniform(0, 20), length_m(lane) - ahead_m
        while s_m < end:
            x, y = at(lane, s_m)
            if abs(x) < 150 and abs(y) < 150 or family in ("carriageway", "bend"):
                places.append((lane["id"], s_m, x, y))
            s_m += SPACE_M + draw.uniform(0, 25)
    draw.shuffle(places)
    chosen = []
    for place in places:
        if all(math.dist(place[2:], other[2:]) > SPACE_M for other in chosen):
            chosen.append(place)
    chosen = chosen[:draw.randint(9, 25)]
    lane, s_m = chosen[0][:2]
    return {
        "id": f"{family}_{seed}", "map": document,
        "ego": {"pose": {"lane": lane, "s_m": round(s_m, 2)},
                "speed_mps": round(0.7 * m.lanes[lane]["limit"], 2),
                "route": route(draw, m, lane, s_m)},
        "agents": [vehicle(draw, m, i, *place[:2]) for i, place in enumerate(chosen[1:])],
        "horizon_s": round(START_S + RECORDED_S, 1),
    }


def at(lane, s_m):
    for a, b in zip(lane["points"], lane["points"][1:]):
        step = math.dist(a, b)
        if s_m <= step:
            return tuple(p + (q - p) * s_m / step for p, q in zip(a, b))
        s_m -= step
    return lane["points"][-1]


# ---- driving, recording, comparing ----

def swerve(binary, *words, codes=(0, 1)):
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        sys.exit(f"swerve {' '.join(map(str, words[:3]))}: {done.stderr.strip()}")
    return done.stdout


def recorded(scenario, trace):
    """The scenario's last seconds as a scene of recordings; None: ego's drive ended before."""
    first = round(START_S * 10)
    ticks = [json.loads(line) for line in trace.splitlines()]
    ticks = [t for t in ticks if first <= t["tick"]]
    if len(ticks) <= 50:
        return None
    tracks = {}
    for t in ticks:
        for a in t["agents"]:
            tracks.setdefault(a["agent"], []).append(
                [round((t["tick"] - first) / 10, 1)]
                + [round(a[k], 4) for k in ("x_m", "y_m", "heading_rad", "speed_mps")])
    log = [[round((t["tick"] - first) / 10, 1)]
           + [round(t[k], 4) for k in ("x_m", "y_m", "heading_rad", "speed_mps")] for t in ticks]
    agents = []
    for index, points in sorted(tracks.items()):
        if points[0][0] == 0 and min(p[4] for p in points) >= 0:
            record = scenario["agents"][index]
            agents.append({"id": record["id"], "kind": record["kind"], "behaviour": "replay",
                           "trajectory": points})
    signals = [dict(s, offset_s=round(s.get("offset_s", 0) + START_S, 1)) if "phases" in s else s
               for s in scenario["map"].get("signals", [])]
    out = dict(scenario, agents=agents, horizon_s=RECORDED_S - 0.2,
               ego={"pose": dict(zip(("x_m", "y_m", "heading_rad"), log[0][1:4])),
                    "speed_mps": log[0][4], "log": log})
    if signals:
        out["map"] = dict(scenario["map"], signals=signals)
    return out


def record_family(binary, folder, family, seeds):
    """Files of the recorded scenes, in a folder of their own."""
    drawn, kept = folder / f"{family}_drawn", folder / family
    drawn.mkdir(), kept.mkdir()
    for seed in seeds:
        path = drawn / f"{family}_{seed}.json"
        path.write_text(json.dumps(scene(family, seed)), encoding="utf-8")
    found = json.loads(swerve(binary, "validate", *drawn.iterdir(), "--json", codes=(0, 3)))
    for file in found["files"]:
        if not file["valid"]:  # two of them would overlap, or a script is too hard for the road
            pathlib.Path(file["file"]).unlink()
    store = folder / f"{family}.db"
    swerve(binary, "run", drawn, "--store", store, "--planner", "builtin:idm")
    for line in swerve(binary, "show", "--all", "--store", store).splitlines():
        outcome = json.loads(line)
        name = outcome["scenario_id"]
        scenario = json.loads((drawn / f"{name}.json").read_text(encoding="utf-8"))
        found = recorded(scenario, swerve(binary, "show", outcome["id"], "--trace", "--store", store))
        if found is not None:
            (kept / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")
    return kept


def cell(value, signed=False):
    if value["mean"] is None:
        return "-"
    form = "{:+.2f}" if signed else "{:.2f}"
    if not signed or value["low"] is None:
        return form.format(value["mean"])
    return " ".join([form.format(value["mean"]), "[" + form.format(value["low"]) + ",",
                     form.format(value["high"]) + "]"])


def token_table(results):
    print("| family | scenes, movers | 1 s: IDM / tokens, m | 3 s | 5 s | tokens less IDM, 1 s | 3 s | 5 s |")
    print("|---" * 8 + "|")
    for name, result in results.items():
        by = {round(f["horizon_s"]): f["tokens_less_foreseen_m"] for f in result["foresight"]}
        cells = {model: {round(h["horizon_s"]): h["position_m"] for h in result["models"][model]}
                 for model in ("foreseen", "tokens")}
        row = [name, f"{by[3]['scenes']}, {by[3]['windows']:.0f}"]
        row += [" / ".join(cell(cells[m][h]) for m in cells) for h in (1, 3, 5)]
        row += [cell(by[h], True) for h in (1, 3, 5)]
        print("| " + " | ".join(row) + " |")


def sample_table(results):
    print("| family | energy, 1 s: drivers / tokens, m | 3 s | 5 s | tokens less drivers, 3 s | overlaps: recorded / drivers / "
          "tokens | off the road | slower behind a braking ego: drivers / tokens (cases) |")
    print("|---" * 8 + "|")
    for name, result in results.items():
        by = {round(e["horizon_s"]): e for e in result["samples"]["energy"]}
        of = result["samples"]["of"]
        row = [name] + [" / ".join(cell(by[h][m]) for m in ("drivers_m", "tokens_m")) for h in (1, 3, 5)]
        row += [cell(by[3]["tokens_less_drivers_m"], True)]
        row += [" / ".join(share(of[m][what]) for m in ("recorded", "drivers", "tokens"))
                for what in ("overlaps", "off_road")]
        row += [" / ".join(share(of[m]["answers"]) for m in ("drivers", "tokens"))
                + f" ({of['tokens']['answers']['windows']:.0f})"]
        print("| " + " | ".join(row) + " |")


def share(value):
    return "-" if value["mean"] is None else f"{100 * value['mean']:.1f}%"


def table(results):
    print("| family | scenes, movers | 1 s: straight / accel. / foreseen, m | 3 s | 5 s | foreseen less "
          "accel., 3 s | 5 s | moving IoU at 3 s: straight / foreseen | more than straight, 3 s | 5 s |")
    print("|---" * 10 + "|")
    for name, result in results.items():
        by = {round(f["horizon_s"]): f for f in result["foresight"]}
        cells = {model: {round(h["horizon_s"]): h["position_m"] for h in result["models"][model]}
                 for model in ("traffic_straight", "accelerating", "foreseen")}
        movers = cells["foreseen"][3]
        row = [name, f"{movers['scenes']}, {movers['windows']:.0f}"]
        row += [" / ".join(cell(cells[m][h]) for m in cells) for h in (1, 3, 5)]
        row += [cell(by[h]["foreseen_less_accelerating_m"], True) for h in (3, 5)]
        row += [" / ".join(cell(by[3]["moving_iou"][m]) for m in ("straight", "foreseen"))]
        row += [cell(by[h]["foreseen_more_than_straight"], True) for h in (3, 5)]
        print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--scenes", type=int, default=36, help="of each family (36)")
    parser.add_argument("--seed", type=int, default=1000, help="of the first scene (1000)")
    parser.add_argument("--families", default=",".join(FAMILIES), help="with commas (all)")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the scenes")
    parser.add_argument("--rows", action="store_true",
                        help="with --keep: files FAMILY.rows for scripts/train/traffic.py, no table")
    parser.add_argument("--tokens", type=pathlib.Path,
                        help="a network of that script, beside IDM")
    parser.add_argument("--samples", type=int, default=0, help="with --tokens: futures to draw of each scene")
    parser.add_argument("--json", action="store_true", help="correlations in place of the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        seeds = range(options.seed, options.seed + options.scenes)
        kept = {}
        for family in options.families.split(","):
            kept[family] = record_family(options.binary, folder, family, seeds)
            if options.rows:
                swerve(options.binary, "correlate", kept[family], "--json", "--rows",
                       folder / f"{family}.rows")
        if options.rows:
            return
        words = ["--json"] + (["--tokens", options.tokens] if options.tokens else [])
        words += ["--samples", options.samples] if options.samples else []
        results = {family: json.loads(swerve(options.binary, "correlate", path, *words))
                   for family, path in kept.items()}
        results["all"] = json.loads(swerve(options.binary, "correlate", *kept.values(), *words))
        if options.json:
            print(json.dumps(results))
        else:
            (token_table if options.tokens else table)(results)
        if options.samples and not options.json:
            sample_table(results)


if __name__ == "__main__":
    main()
