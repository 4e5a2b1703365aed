#!/usr/bin/env python3
"""Writes the maps of the scenario library (scenarios/maps/*.json).

Every map is built from a few primitives (a straight or curved reference line, lanes at lateral
offsets from it, arcs and Hermite curves in junctions), so that neighbouring lanes stay parallel
and a lane ends exactly where its successors begin; check() verifies both before a file is written.
A left-hand-traffic map is the mirror image (y -> -y) of the right-hand one of the same name.

Conventions: metres, x east, y north, lane centre lines in the direction of travel, coordinates
rounded to 1 mm. Run it from anywhere; the output depends on this file alone.
"""
import json
import math
import pathlib
import sys

OUT = pathlib.Path(__file__).resolve().parent.parent / "scenarios" / "maps"
KPH, MPH = 1 / 3.6, 0.44704


# ---- lines ----

def straight(x0, y0, x1, y1):
    return [(x0, y0), (x1, y1)]


def hermite(a, heading_a, b, heading_b, count=17, tension=1.0):
    """Cubic Hermite curve from a to b with the given end headings; tangents as long as the chord."""
    chord = math.hypot(b[0] - a[0], b[1] - a[1]) * tension
    ta = (chord * math.cos(heading_a), chord * math.sin(heading_a))
    tb = (chord * math.cos(heading_b), chord * math.sin(heading_b))
    points = []
    for i in range(count):
        u = i / (count - 1)
        h00, h10 = 2 * u**3 - 3 * u**2 + 1, u**3 - 2 * u**2 + u
        h01, h11 = -2 * u**3 + 3 * u**2, u**3 - u**2
        points.append(tuple(h00 * a[k] + h10 * ta[k] + h01 * b[k] + h11 * tb[k] for k in (0, 1)))
    return points


def arc(centre, radius, from_deg, to_deg, step_deg=5.0):
    count = max(2, round(abs(to_deg - from_deg) / step_deg) + 1)
    angles = [from_deg + (to_deg - from_deg) * i / (count - 1) for i in range(count)]
    return [(centre[0] + radius * math.cos(math.radians(a)),
             centre[1] + radius * math.sin(math.radians(a))) for a in angles]


def integrate(curvature, length_m, x=0.0, y=0.0, heading=0.0, step_m=0.25, every_m=4.0):
    """A line whose curvature is a function of arc length: [(x, y, heading)] every `every_m`."""
    line, per = [(x, y, heading)], round(every_m / step_m)
    for i in range(1, round(length_m / step_m) + 1):
        middle = heading + 0.5 * step_m * curvature((i - 0.75) * step_m)
        x, y = x + step_m * math.cos(middle), y + step_m * math.sin(middle)
        heading += step_m * curvature((i - 0.5) * step_m)
        if i % per == 0:
            line.append((x, y, heading))
    return line


def parallel(line, offset_m):
    """The line shifted to its left by offset_m."""
    return [(x - offset_m * math.sin(h), y + offset_m * math.cos(h)) for x, y, h in line]


def thinned(points, tolerance_m=0.002):
    """Without the points that a straight line through their neighbours passes within tolerance."""
    kept, i = [points[0]], 0
    while i + 1 < len(points):
        j = i + 1
        while j + 1 < len(points) and all(
                off_line(points[i], points[j + 1], p) <= tolerance_m for p in points[i + 1:j + 1]):
            j += 1
        kept.append(points[j])
        i = j
    return kept


def off_line(a, b, p):
    dx, dy = b[0] - a[0], b[1] - a[1]
    return abs(dx * (p[1] - a[1]) - dy * (p[0] - a[0])) / math.hypot(dx, dy)


def ramp(u):
    """Smoothstep on 0..1, for curvature that begins and ends gently."""
    u = min(1.0, max(0.0, u))
    return u * u * (3 - 2 * u)


# ---- map under construction ----

def swap_compass(word):
    if set(word) <= set("nesw"):
        return word.translate(str.maketrans("ns", "sn"))
    return {"north": "south", "south": "north"}.get(word, word)



class Map:
    def __init__(self, name):
        self.name, self.lanes, self.drivable, self.crosswalks = name, {}, [], []

    def lane(self, lane_id, points, width=3.5, limit=0.0, kind="driving", marks=("solid", "solid"),
             junction=False):
        self.lanes[lane_id] = {
            "id": lane_id, "kind": kind,
            "points": thinned([(round(x, 3), round(y, 3)) for x, y in points]),
            "width": width, "limit": round(limit, 2), "marks": marks, "junction": junction,
            "left": None, "right": None, "opposite": False, "mirrored": False,
            "successors": []}
        return lane_id

    def beside(self, left, right):
        """Same-direction neighbours."""
        self.lanes[left]["right"], self.lanes[right]["left"] = right, left

    def opposite(self, a, b):
        """Neighbours across the middle of a two-way road."""
        self.lanes[a].update(left=b, opposite=True)
        self.lanes[b].update(left=a, opposite=True)

    def follow(self, *ids):
        for a, b in zip(ids, ids[1:]):
            self.lanes[a]["successors"].append(b)

    def box(self, into, x0, y0, x1, y1):
        into.append([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])

    def mirrored(self):
        """The same road for left-hand traffic; north and south swap in the names too."""
        out = Map(self.name + "_lht")

        def flip(points):
            return [(x, -y if y else 0.0) for x, y in points]

        def rename(lane_id):
            return lane_id and "_".join(swap_compass(word) for word in lane_id.split("_"))

        for lane in self.lanes.values():
            out.lanes[rename(lane["id"])] = dict(
                lane, id=rename(lane["id"]), points=flip(lane["points"]), mirrored=True,
                left=rename(lane["right"]), right=rename(lane["left"]), marks=lane["marks"][::-1],
                successors=[rename(s) for s in lane["successors"]])
        out.drivable = [flip(p) for p in self.drivable]
        out.crosswalks = [flip(p) for p in self.crosswalks]
        return out

    def check(self):
        for lane in self.lanes.values():
            for successor in lane["successors"]:
                gap = math.dist(lane["points"][-1], self.lanes[successor]["points"][0])
                assert gap < 1e-9, f"{self.name}: {lane['id']} -> {successor}: gap {gap:.3f} m"
            for side, back in (("left", "right"), ("right", "left")):
                other = lane[side]
                if other is not None:
                    across = lane["opposite"] and side == ("right" if lane["mirrored"] else "left")
                    expect = side if across else back
                    assert self.lanes[other][expect] == lane["id"], f"{self.name}: {other}"

    def document(self):
        lanes = []
        for lane in self.lanes.values():
            out = {"id": lane["id"]}
            if lane["kind"] != "driving":
                out["kind"] = lane["kind"]
            out["centre_line"] = [list(p) for p in lane["points"]]
            out["width_m"] = lane["width"]
            if lane["limit"]:
                out["speed_limit_mps"] = lane["limit"]
            for side in ("left", "right"):
                if lane[side] is not None:
                    out[side] = lane[side]
            if lane["opposite"]:
                out["right_opposite" if lane["mirrored"] else "left_opposite"] = True
            if lane["successors"]:
                out["successors"] = lane["successors"]
            out["left_marking"], out["right_marking"] = lane["marks"]
            if lane["junction"]:
                out["intersection"] = True
            lanes.append(out)
        document = {"id": self.name, "lanes": lanes}
        if self.drivable:
            document["drivable"] = [[list(p) for p in a] for a in self.drivable]
        if self.crosswalks:
            document["crosswalks"] = [[list(p) for p in a] for a in self.crosswalks]
        return document


# ---- the maps ----

def urban_two_way():
    """Straight street, one lane each way, pavements, a zebra crossing at x = 100."""
    m = Map("urban_two_way")
    m.lane("east", straight(-120, -1.75, 520, -1.75), limit=50 * KPH, marks=("dashed", "solid"))
    m.lane("west", straight(520, 1.75, -120, 1.75), limit=50 * KPH, marks=("dashed", "solid"))
    m.opposite("east", "west")
    m.lane("sidewalk_south", straight(-120, -4.75, 520, -4.75), 2.5, kind="sidewalk")
    m.lane("sidewalk_north", straight(520, 4.75, -120, 4.75), 2.5, kind="sidewalk")
    m.box(m.crosswalks, 98, -3.5, 102, 3.5)
    return m


def street_parking(name, limit_kph, width, driveways=()):
    """Street with a parking strip and a pavement on both sides; optional driveways to the south."""
    m = Map(name)
    park, walk = width + 1.1, width + 2.2 + 1.25
    for road, sign, a, b in (("east", -1, -100, 400), ("west", 1, 400, -100)):
        side = "south" if sign < 0 else "north"
        m.lane(road, straight(a, sign * width / 2, b, sign * width / 2), width, limit_kph * KPH,
               marks=("dashed", "none"))
        m.lane("parking_" + side, straight(a, sign * park, b, sign * park), 2.2, kind="shoulder",
               marks=("none", "solid"))
        m.lane("sidewalk_" + side, straight(a, sign * walk, b, sign * walk), 2.5, kind="sidewalk")
    m.opposite("east", "west")
    for x in driveways:
        m.box(m.drivable, x - 2, -width - 16, x + 2, -width)
    m.box(m.crosswalks, 198, -width - 2.2, 202, width + 2.2)
    return m


def urban_dual():
    """Arterial, two lanes each way, a cycle lane each side, crossings at x = 100."""
    m = Map("urban_dual")
    for road, sign, a, b in (("east", -1, -120, 520), ("west", 1, 520, -120)):
        m.lane(road + "_0", straight(a, sign * 4.875, b, sign * 4.875), 3.25, 50 * KPH,
               marks=("dashed", "dashed"))
        m.lane(road + "_1", straight(a, sign * 1.625, b, sign * 1.625), 3.25, 50 * KPH,
               marks=("solid", "dashed"))
        m.beside(road + "_1", road + "_0")
        m.lane(road + "_cycle", straight(a, sign * 7.4, b, sign * 7.4), 1.8, kind="cycle",
               marks=("dashed", "solid"))
        m.lane(road + "_sidewalk", straight(a, sign * 9.8, b, sign * 9.8), 3.0, kind="sidewalk")
    m.opposite("east_1", "west_1")
    m.box(m.crosswalks, 98, -8.3, 102, 8.3)
    return m


def motorway():
    """One carriageway, three lanes and a hard shoulder; lane_0 is the slow lane, y = 0."""
    m = Map("motorway")
    parallel_lanes(m, "lane", 3, 3.75, [(-200, 0, 0), (1600, 0, 0)], 100 * KPH)
    m.lane("shoulder", straight(-200, -3.375, 1600, -3.375), 3.0, kind="shoulder")
    return m


def freeway():
    """North American freeway, four lanes with shoulders on both sides, 55 mph."""
    m = Map("freeway")
    parallel_lanes(m, "lane", 4, 3.6, [(-200, 0, 0), (1600, 0, 0)], 55 * MPH)
    m.lane("shoulder_right", straight(-200, -3.3, 1600, -3.3), 3.0, kind="shoulder")
    m.lane("shoulder_left", straight(-200, 14.1, 1600, 14.1), 3.0, kind="shoulder")
    return m


def motorway_curve():
    """Three lanes and a shoulder in a long left-hand bend of 600 m radius that begins at x = 100."""
    m = Map("motorway_curve")
    line = integrate(lambda s: (ramp((s - 300) / 100) - ramp((s - 900) / 100)) / 600, 1300, -200)
    parallel_lanes(m, "lane", 3, 3.75, line, 100 * KPH)
    m.lane("shoulder", parallel(line, -3.375), 3.0, kind="shoulder")
    return m


def parallel_lanes(m, prefix, count, width, line, limit):
    """Same-direction lanes prefix_0 (rightmost, on the line) .. prefix_{count-1}."""
    for i in range(count):
        marks = ("dashed" if i + 1 < count else "solid", "dashed" if i else "solid")
        m.lane(f"{prefix}_{i}", parallel(line, i * width), width, limit, marks=marks)
        if i:
            m.beside(f"{prefix}_{i}", f"{prefix}_{i - 1}")


def motorway_merge():
    """Three lanes with an on-ramp: ramp -> acceleration lane (x = 200..450) beside lane_0."""
    m = Map("motorway_merge")
    cuts = ((-200, 200, "a"), (200, 450, "b"), (450, 1200, "c"))
    for x0, x1, part in cuts:
        parallel_lanes(m, part, 3, 3.75, [(x0, 0, 0), (x1, 0, 0)], 100 * KPH)
    for i in range(3):
        m.follow(f"a_{i}", f"b_{i}", f"c_{i}")
    m.lane("ramp", straight(-60, -24, 60, -14) + hermite((60, -14), math.atan2(10, 120),
                                                          (200, -3.75), 0.0)[1:],
           3.75, 80 * KPH)
    m.lane("acceleration", straight(200, -3.75, 450, -3.75), 3.75, 100 * KPH,
           marks=("dashed", "solid"))
    m.lanes["b_0"]["marks"] = ("dashed", "dashed")
    m.beside("b_0", "acceleration")
    m.follow("ramp", "acceleration")
    m.drivable.append([(450, -5.625), (450, -1.875), (500, -1.875)])
    return m


def lane_drop():
    """Dual carriageway, two lanes; the right one ends at x = 200 and tapers into the left."""
    m = Map("lane_drop")
    parallel_lanes(m, "a", 2, 3.5, [(-150, -3.5, 0), (200, -3.5, 0)], 80 * KPH)
    m.lane("b_1", straight(200, 0, 280, 0), 3.5, 80 * KPH)
    m.lane("b_0", hermite((200, -3.5), 0.0, (280, 0), 0.0), 3.5, 80 * KPH, marks=("none", "solid"))
    m.lane("c_1", straight(280, 0, 700, 0), 3.5, 80 * KPH)
    m.follow("a_1", "b_1", "c_1")
    m.follow("a_0", "b_0", "c_1")
    return m


def tunnel():
    """Two lanes one way between walls, no shoulder, a gentle right-hand bend, 80 km/h."""
    m = Map("tunnel")
    line = integrate(lambda s: -(ramp((s - 250) / 80) - ramp((s - 500) / 80)) / 700, 900, -100)
    parallel_lanes(m, "lane", 2, 3.5, line, 80 * KPH)
    return m


def rural_straight():
    """Two-way country road with narrow gravel edges, 90 km/h."""
    m = Map("rural_straight")
    two_way(m, [(-150, 0, 0), (850, 0, 0)], 3.5, 90 * KPH)
    return m


def rural_curvy():
    """Two-way country road, S-bends of 220 m radius, 80 km/h."""
    m = Map("rural_curvy")
    line = integrate(lambda s: math.sin(2 * math.pi * (s - 40) / 320) / 220 * ramp((s - 40) / 40),
                     720, every_m=5)
    two_way(m, line, 3.4, 80 * KPH)
    return m


def rural_bend():
    """Country road with one right-hand bend: 80 m radius, 80 degrees, from x = 120; 50 km/h."""
    m = Map("rural_bend")
    line = integrate(lambda s: -(ramp((s - 120) / 30) - ramp((s - 230) / 30)) / 80, 420, every_m=4)
    two_way(m, line, 3.4, 50 * KPH)
    return m


def two_way(m, line, width, limit):
    back = line[::-1]
    turned = [(x, y, h + math.pi) for x, y, h in back]
    m.lane("east", parallel(line, -width / 2), width, limit, marks=("dashed", "solid"))
    m.lane("west", parallel(turned, -width / 2), width, limit, marks=("dashed", "solid"))
    m.opposite("east", "west")
    m.lane("edge_south", parallel(line, -width - 0.6), 1.2, kind="shoulder",
           marks=("solid", "none"))
    m.lane("edge_north", parallel(turned, -width - 0.6), 1.2, kind="shoulder",
           marks=("solid", "none"))


ARMS = {"e": 0, "n": 90, "w": 180, "s": 270}


def turned(points, degrees):
    c, s = (round(f(math.radians(degrees)), 12) for f in (math.cos, math.sin))
    return [(x * c - y * s, x * s + y * c) for x, y in points]


def junction(name, arms):
    """Crossing of two-way streets, box of +-12 m: w_in, w_out, .. and w_to_e, w_to_n, .."""
    m = Map(name)
    for arm in arms:  # drawn as the east arm, then turned
        deg = ARMS[arm]
        m.lane(arm + "_in", turned(straight(220, 1.75, 12, 1.75), deg), limit=50 * KPH,
               marks=("dashed", "solid"))
        m.lane(arm + "_out", turned(straight(12, -1.75, 220, -1.75), deg), limit=50 * KPH,
               marks=("dashed", "solid"))
        m.opposite(arm + "_in", arm + "_out")
        m.crosswalks.append([(round(x, 3), round(y, 3)) for x, y in turned(
            [(13.5, -3.5), (16.5, -3.5), (16.5, 3.5), (13.5, 3.5)], deg)])
        exits = {180: straight(12, 1.75, -12, 1.75), 90: arc((12, 12), 10.25, 270, 180),
                 270: arc((12, -12), 13.75, 90, 180)}
        for turn, points in exits.items():
            to = next(a for a, d in ARMS.items() if d == (deg + turn) % 360)
            if to in arms:
                lane = m.lane(f"{arm}_to_{to}", turned(points, deg),
                              limit=(50 if turn == 180 else 25) * KPH, marks=("none", "none"),
                              junction=True)
                m.follow(arm + "_in", lane)
    for lane in list(m.lanes):
        if "_to_" in lane:
            m.follow(lane, lane[-1] + "_out")
    corners = []
    for arm, deg in sorted(ARMS.items(), key=lambda item: item[1]):
        if arm in arms:
            corners += turned([(12, -3.5), (12, 3.5)], deg)
    m.drivable.append([(round(x, 3), round(y, 3)) for x, y in corners])
    return m


def roundabout():
    """Single-lane roundabout with four arms, ring of 20 m radius; ring_w passes the west arm."""
    m, radius, half = Map("roundabout"), 20.0, 24
    order = ["e", "n", "w", "s"]

    def on_ring(deg):
        return radius * math.cos(math.radians(deg)), radius * math.sin(math.radians(deg))

    for arm, deg in ARMS.items():
        after = order[(order.index(arm) + 1) % 4]
        m.lane(arm + "_in", turned(straight(220, 1.75, 50, 1.75), deg), limit=50 * KPH,
               marks=("dashed", "solid"))
        m.lane(arm + "_out", turned(straight(50, -1.75, 220, -1.75), deg), limit=50 * KPH,
               marks=("dashed", "solid"))
        m.opposite(arm + "_in", arm + "_out")
        m.lane(arm + "_entry", turned(hermite((50, 1.75), math.pi, on_ring(half),
                                              math.radians(half + 90)), deg),
               4.0, 30 * KPH, marks=("solid", "solid"), junction=True)
        m.lane(arm + "_exit", turned(hermite(on_ring(-half), math.radians(90 - half), (50, -1.75),
                                             0.0), deg),
               4.0, 30 * KPH, marks=("solid", "solid"), junction=True)
        m.lane("ring_" + arm, arc((0, 0), radius, deg - half, deg + half, 4), 5.0, 25 * KPH,
               marks=("solid", "none"), junction=True)
        m.lane(f"ring_{arm}{after}", arc((0, 0), radius, deg + half, deg + 90 - half, 4), 5.0,
               25 * KPH, marks=("solid", "none"), junction=True)
    for i, arm in enumerate(order):
        after = order[(i + 1) % 4]
        m.follow(arm + "_in", arm + "_entry", f"ring_{arm}{after}", "ring_" + after)
        m.follow("ring_" + arm, f"ring_{arm}{after}", after + "_exit", after + "_out")
    for lane in m.lanes.values():
        lane["successors"] = list(dict.fromkeys(lane["successors"]))
    return m


def parking_lot():
    """Car park: a 6 m two-way aisle with perpendicular bays (2.5 x 5 m) on both sides."""
    m = Map("parking_lot")
    m.lane("east", straight(-60, -1.5, 140, -1.5), 3.0, 20 * KPH, marks=("none", "none"))
    m.lane("west", straight(140, 1.5, -60, 1.5), 3.0, 20 * KPH, marks=("none", "none"))
    m.opposite("east", "west")
    m.box(m.drivable, -50, -8.2, 130, 8.2)
    return m


# ---- writing ----

def pairs(points, indent):
    """Coordinate pairs, as many to a line as fit."""
    lines, line = [], ""
    for x, y in points:
        text = f"[{number(x)}, {number(y)}]"
        if line and len(indent) + len(line) + len(text) + 3 > 98:
            lines.append(line)
            line = ""
        line += (", " if line else "") + text
    lines.append(line)
    return (",\n" + indent).join(lines)


def number(v):
    text = f"{v:.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def write_json(document):
    out = ["{", f'  "id": {json.dumps(document["id"])},', '  "lanes": [']
    for i, lane in enumerate(document["lanes"]):
        members = []
        for key, value in lane.items():
            if key == "centre_line":
                text = pairs(value, " " * 8)
                if "\n" in text:
                    text = "[\n        " + text + "\n      ]"
                else:
                    text = f"[{text}]"
            else:
                text = json.dumps(value)
            members.append(f'      "{key}": {text}')
        out.append("    {\n" + ",\n".join(members) + "\n    }"
                   + ("," if i + 1 < len(document["lanes"]) else ""))
    out.append("  ]")
    for key in ("drivable", "crosswalks"):
        if key in document:
            out[-1] += ","
            areas = ",\n".join(f"    [{pairs(area, ' ' * 5)}]" for area in document[key])
            out.append(f'  "{key}": [\n{areas}\n  ]')
    out.append("}")
    return "\n".join(out) + "\n"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    right_hand = [
        urban_two_way(), street_parking("street_parking", 50, 3.25),
        street_parking("residential", 30, 3.0, driveways=(60, 90)), urban_dual(), motorway(),
        freeway(), motorway_curve(), motorway_merge(), lane_drop(), tunnel(), rural_straight(),
        rural_curvy(), rural_bend(), junction("junction_4way", ("e", "n", "w", "s")),
        junction("junction_t", ("e", "w", "s")), roundabout(), parking_lot()]
    mirrored = {"urban_two_way", "street_parking", "urban_dual", "motorway", "rural_straight",
                "rural_curvy", "junction_4way", "roundabout"}
    for m in right_hand + [m.mirrored() for m in right_hand if m.name in mirrored]:
        m.check()
        (OUT / f"{m.name}.json").write_text(write_json(m.document()), encoding="utf-8")
        print(f"{m.name}: {len(m.lanes)} lanes", file=sys.stderr)


if __name__ == "__main__":
    main()
