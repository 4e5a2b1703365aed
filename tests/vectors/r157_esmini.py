#!/usr/bin/env python3
"""Makes r157_esmini.txt: what esmini's reference drivers do on its own ALKS cut-in.

usage: r157_esmini.py ESMINI RESOURCES > r157_esmini.txt      ESMINI: the program, built without graphics or with;
RESOURCES: the folder `resources` of a checkout of github.com/esmini/esmini

RESOURCES/xosc/alks_cut-in.xosc is driven as it is but for the controller's properties (models ReferenceDriver and FSM, no
cruise control, no AEB) and the parameters of CASES, with steps of 0.1 s. Run again only when the cases change.

A line is `case MODEL COUNT LENGTH WIDTH LANE_WIDTH` (0: reference driver, 1: FSM), then COUNT lines
`EGO_X EGO_SPEED X Y VX VY ACCEL`: both boxes' centres, ego's lane being y = 0, and ego's acceleration in the step from
there. A case ends where ego comes no nearer or the boxes lie side by side.
"""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

CASES = [{"EgoSpeed": ego, "TargetSpeed": ego - less, "TTC": ttc, "TargetS": 35 + less * (ttc + 1)}
         for ego, less in ((20, 5), (25, 10), (30, 10), (22, 6)) for ttc in (2.85, 3.2, 4.05)]
LANE_M = 3.07  # of straight_500m.xodr


def scenario(text, model, parameters):
    properties = {"mode": "override", "model": model, "cruise": "false", "aebAvailable": "false", "logLevel": "0"}
    lines = "".join(f'<Property name="{name}" value="{value}"/>' for name, value in properties.items())
    text = re.sub(r"<Properties>.*?</Properties>", f"<Properties>{lines}</Properties>", text, flags=re.S)
    for name, value in parameters.items():
        text = re.sub(rf'(name="{name}" parameterType="double" value=")[^"]*', rf"\g<1>{value}", text)
    return text


def log(esmini, path):
    """Rows of esmini's log: for ego and target (x of the box's centre, y, speed, length, width)."""
    out = path.with_suffix(".csv")
    subprocess.run([esmini, "--headless", "--fixed_timestep", "0.1", "--osc", path, "--csv_logger", out, "--disable_log"],
                   check=True, stdout=subprocess.DEVNULL, cwd=path.parent)
    rows = list(csv.reader(out.open()))
    head = next(i for i, row in enumerate(rows) if row and row[0].startswith("Index"))
    names = [name.strip() for name in rows[head]]
    found = []
    for row in rows[head + 1:]:
        value = dict(zip(names, (cell.strip() for cell in row)))
        bodies = []
        for i in (1, 2):
            get = lambda what: float(value[f"#{i} {what}"])  # noqa: E731
            bodies.append((get("World_Position_X [m]") + get("bb_x [m]"), get("World_Position_Y [m]"),
                           get("Current_Speed [m/s]"), get("bb_length [m]"), get("bb_width [m]")))
        found.append(bodies)
    return found


def drive(esmini, xosc, model, parameters):
    path = xosc / "swerve_vectors.xosc"
    path.write_text(scenario((xosc / "alks_cut-in.xosc").read_text(), model, parameters))
    rows = log(esmini, path)
    out = []
    for (ego, other), (ego_next, other_next) in zip(rows, rows[1:]):
        gap_m = other[0] - ego[0] - (ego[3] + other[3]) / 2
        vx, vy = ((other_next[k] - other[k]) / 0.1 for k in (0, 1))
        if gap_m <= 0 or (ego[2] <= vx and out and out[-1][-1] < -1):
            break
        out.append((ego[0], ego[2], other[0], other[1] - ego[1], vx, vy, (ego_next[2] - ego[2]) / 0.1))
    return out, rows[0][0][3:]


def main():
    esmini, resources = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "resources"
        subprocess.run(["cp", "-r", resources, root], check=True)
        for model, name in enumerate(("ReferenceDriver", "FSM")):
            for parameters in CASES:
                rows, (length, width) = drive(esmini, root / "xosc", name, parameters)
                first = next((i for i, row in enumerate(rows) if abs(row[5]) > 1e-6), 0)
                rows = rows[max(first - 2, 0):]
                print(f"case {model} {len(rows)} {length:.9g} {width:.9g} {LANE_M}")
                for row in rows:
                    print(" ".join(f"{value:.9g}" for value in row))


if __name__ == "__main__":
    main()
