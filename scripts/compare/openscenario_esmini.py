#!/usr/bin/env python3
"""Compares where actors of OpenSCENARIO files are with where esmini has them, over the run.

    scripts/compare/openscenario_esmini.py --esmini PATH --binary build/worker/swerve FILE.xosc...

Each file is run by esmini without a window, in steps of 2 ms as here, and imported and run here. (What waits
for a distance waits a step more or less; where a car closes in by 6 m/s and is a step of 36 m/s late, that is 0.2 m a brake later.) Ego
follows the drive that esmini recorded, so that what waits for ego waits for the same; with --observer
somebody who stands far away is ego, and the file's ego does what the file says, as in esmini. A row per
file: the largest distance between the reference points of an actor in both, and of which actor and when.
Left out, and said in the row: what comes after esmini has stopped an entity at once at its road's end, where it goes
straight on here. Entities that an esmini controller drives are none's to compare.
"""
import argparse
import csv
import json
import math
import os
import subprocess
import tempfile

STEP_S = 0.002  # that of the storyboard here


def read_csv(path):
    """{entity: [(t, x, y, heading, speed)]} of an esmini log."""
    entities = {}
    with open(path, newline="", errors="replace") as stream:
        for row in csv.reader(stream):
            cells = [cell.strip() for cell in row]
            if len(cells) < 10 or not cells[0].isdigit():
                continue
            time_s = float(cells[1])
            width = 31
            for at in range(2, len(cells) - width + 2, width):
                part = cells[at:at + width]
                if not part or not part[0]:
                    continue
                entities.setdefault(part[0], []).append(
                    (time_s, float(part[11]), float(part[12]), float(part[24]), float(part[2])))
    return entities


def run_esmini(esmini, path, seconds, log, step_s):
    command = [esmini, "--headless", "--fixed_timestep", str(step_s), "--csv_logger", log, "--osc", path,
               "--disable_controllers", "--disable_stdout", "--disable_log", "--seed", "1"]
    subprocess.run(command, check=True, capture_output=True, timeout=seconds, cwd=os.path.dirname(path) or ".")


def follow(scenario, drive):
    """Has ego follow a drive of its reference point."""
    ahead = next(a["reference_m"] if "reference_m" in a else 0.0
                 for a in scenario["storyboard"]["actors"] if "agent" not in a)
    rows = []
    for time_s, x, y, heading, speed in drive:
        if rows and time_s < rows[-1][0] + 0.0999:
            continue
        heading = math.remainder(heading, 2 * math.pi)
        rows.append([round(time_s, 4), x + ahead * math.cos(heading), y + ahead * math.sin(heading), heading,
                     max(speed, 0.0)])
    last = rows[-1]
    while rows[-1][0] < scenario["horizon_s"]:
        rows.append([rows[-1][0] + 0.1] + last[1:])
    scenario["ego"]["log"] = rows[:4000]
    scenario["ego"]["speed_mps"] = max(drive[0][4], 0.0)


def add_observer(path, folder):
    """A copy of the file with one entity more, who stands 5 km away."""
    with open(path, encoding="utf-8-sig") as stream:
        text = stream.read()
    box = ('<BoundingBox><Center x="1.4" y="0" z="0.7"/><Dimensions width="2" length="4.5" height="1.5"/></BoundingBox>'
           '<Performance maxSpeed="70" maxAcceleration="10" maxDeceleration="10"/>')
    entity = f'<ScenarioObject name="Observer"><Vehicle name="o" vehicleCategory="car">{box}</Vehicle></ScenarioObject>'
    place = ('<Private entityRef="Observer"><PrivateAction><TeleportAction><Position><WorldPosition x="-5000" y="-5000" h="0"/>'
             '</Position></TeleportAction></PrivateAction></Private>')
    text = text.replace("</Entities>", entity + "</Entities>", 1).replace("</Actions>", place + "</Actions>", 1)
    copy = os.path.join(folder, os.path.basename(path))
    with open(copy, "w", encoding="utf-8") as stream:
        stream.write(text)
    return copy


def trace_of(binary, scenario, folder, planner):
    path = os.path.join(folder, "scenario.json")
    store = os.path.join(folder, "store.db")
    with open(path, "w") as stream:
        json.dump(scenario, stream)
    subprocess.run([binary, "run", path, "--world", "object", "--planner", planner, "--store", store],
                   capture_output=True, check=False)
    outcome = subprocess.run([binary, "show", "--all", "--store", store], capture_output=True, text=True, check=True)
    number = json.loads(outcome.stdout.splitlines()[0])["id"]
    trace = subprocess.run([binary, "show", str(number), "--trace", "--store", store], capture_output=True, text=True,
                           check=True)
    return [json.loads(line) for line in trace.stdout.splitlines()]


def stopped_at(rows):
    """When esmini has an entity stop at once, for good: at a road's end, or because its file says so."""
    last = len(rows)
    while last > 0 and rows[last - 1][4] == 0:
        last -= 1
    return rows[last][0] if 0 < last < len(rows) and rows[last - 1][4] > 1 else math.inf


def is_behind(paths, x, y):
    """Whether a place is straight on behind the end of a path that leads nowhere."""
    for path in paths:
        _, end_x, end_y, heading = path["points"][-1][:4]
        ahead = (x - end_x) * math.cos(heading) + (y - end_y) * math.sin(heading)
        beside = (y - end_y) * math.cos(heading) - (x - end_x) * math.sin(heading)
        if "next" not in path and -1 < ahead and abs(beside) < 8:
            return True
    return False


def compare(args, path, folder):
    log = os.path.join(folder, "esmini.csv")
    out = os.path.join(folder, "imported.json")
    words = [path]
    if args.observer:
        words = [add_observer(path, folder), "--ego", "Observer", "--search", os.path.dirname(os.path.abspath(path))]
    imported = subprocess.run([args.binary, "import", "openscenario", *words, "-o", out], capture_output=True, text=True)
    if imported.returncode != 0:
        return None, "refused: " + imported.stderr.strip().splitlines()[-1][-120:]
    try:
        run_esmini(args.esmini, os.path.abspath(path), 60, log, args.step)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return None, "esmini: " + str(error)[-80:]
    if not os.path.exists(log):
        return None, "esmini: no log"
    theirs = read_csv(log)
    with open(out) as stream:
        scenario = json.load(stream)
    ahead = {a["agent"]: a.get("reference_m", 0.0) for a in scenario["storyboard"]["actors"] if "agent" in a}
    if not args.observer:
        ego = next((name for name in theirs if name.lower() == "ego"), next(iter(theirs)))
        follow(scenario, theirs[ego])
    worst = (0.0, "", 0.0)
    compared = {}
    left = {}
    ends = {name: stopped_at(rows) for name, rows in theirs.items()}
    for tick in trace_of(args.binary, scenario, folder, "builtin:maintain" if args.observer else "builtin:log"):
        for name, state in agents_of(tick, scenario):
            original = next((n for n in theirs if n.replace(" ", "_") == name), None)
            if original is None:
                continue
            at = bisect_time(theirs[original], tick_time(tick))
            if at is None:
                continue
            x = state["x_m"] - ahead[name] * math.cos(state["heading_rad"])
            y = state["y_m"] - ahead[name] * math.sin(state["heading_rad"])
            distance = math.hypot(x - at[1], y - at[2])
            if name in left or tick_time(tick) >= ends[original] and is_behind(scenario["storyboard"]["paths"], x, y):
                left.setdefault(name, tick_time(tick))
                continue
            compared[name] = compared.get(name, 0) + 1
            if distance > worst[0]:
                worst = (distance, name, tick_time(tick))
            if args.verbose and abs(tick_time(tick) * 2 - round(tick_time(tick) * 2)) < 1e-6:
                print(f"    {tick_time(tick):6.2f} {name} {x:9.3f} {y:9.3f} theirs {at[1]:9.3f} {at[2]:9.3f} "
                      f"speed {state.get('speed_mps', 0):.2f} {at[4]:.2f} off {distance:.3f}")
    words = "".join(f"; {name} at its road's end from {time_s:.1f} s on" for name, time_s in left.items())
    return worst, f"{len(compared)} actors, {sum(compared.values())} places{words}"


def tick_time(tick):
    return tick["tick"] * 0.1


def agents_of(tick, scenario):
    for state in tick["agents"]:
        yield scenario["agents"][state["agent"]]["id"], state


def bisect_time(rows, time_s):
    low, high = 0, len(rows) - 1
    if time_s > rows[high][0] + 1e-6:
        return None
    while low < high:
        middle = (low + high) // 2
        if rows[middle][0] < time_s - 1e-6:
            low = middle + 1
        else:
            high = middle
    return rows[low]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--esmini", required=True)
    parser.add_argument("--binary", default="build/worker/swerve")
    parser.add_argument("--step", type=float, default=STEP_S, help="of esmini, in seconds")
    parser.add_argument("--observer", action="store_true", help="the file's ego does what the file says")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    args.binary = os.path.abspath(args.binary)
    args.esmini = os.path.abspath(args.esmini)
    within = 0
    for path in args.files:
        with tempfile.TemporaryDirectory() as folder:
            worst, words = compare(args, path, folder)
        if worst is not None:
            within += worst[0] <= 0.1
            words = f"{worst[0]:8.3f} m  {worst[1]} at {worst[2]:.1f} s; {words}"
        print(f"{os.path.basename(path):60} {words}", flush=True)
    print(f"{within} of {len(args.files)} files within 0.1 m")


if __name__ == "__main__":
    main()
