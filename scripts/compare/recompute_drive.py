"""Metrics of worker/METRICS.md from the ticks of a drive and its scenario, in formulas of their own, for recompute.py.

Boxes are compared corner by corner, time to collision by moving them in steps, filters by solving least squares,
roads as they are drawn, not sampled. Nothing here calls or imports the product.
"""
import math
from functools import lru_cache

TICK_S = 0.1
TOUCH_M = 1e-9
TTC_STEPS = 30
FAR = math.inf


# ---- boxes: (x, y, cos, sin, half length, half width) ----

def box_of(state, length_m, width_m):
    return (state["x_m"], state["y_m"], math.cos(state["heading_rad"]), math.sin(state["heading_rad"]),
            length_m / 2, width_m / 2)


def corners(box):
    x, y, c, s, along, across = box
    return [(x + u * along * c - v * across * s, y + u * along * s + v * across * c)
            for u, v in ((1, 1), (-1, 1), (-1, -1), (1, -1))]


def gap(a, b):
    """Largest gap on the four axes of two boxes; below 0 they overlap."""
    pa, pb = corners(a), corners(b)
    widest = -FAR
    for x, y in ((a[2], a[3]), (-a[3], a[2]), (b[2], b[3]), (-b[3], b[2])):
        ia, ib = [px * x + py * y for px, py in pa], [px * x + py * y for px, py in pb]
        widest = max(widest, min(ia) - max(ib), min(ib) - max(ia))
    return widest


def to_segment(p, a, b):
    dx, dy = b[0] - a[0], b[1] - a[1]
    square = dx * dx + dy * dy
    t = min(1.0, max(0.0, ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / square)) if square > 0 else 0.0
    return math.hypot(p[0] - a[0] - t * dx, p[1] - a[1] - t * dy)


def clearance(a, b):
    """Distance of two boxes: from a corner of one to an edge of the other."""
    if gap(a, b) <= TOUCH_M:
        return 0.0
    pa, pb = corners(a), corners(b)
    return min(min(to_segment(p, other[i - 1], other[i]) for p in own for i in range(4))
               for own, other in ((pa, pb), (pb, pa)))


# ---- filters ----

@lru_cache(None)
def fit_weights(window, order, derivative, at):
    """Weights that give a derivative at place `at` of the polynomial fitted to a window, in steps (normal equations)."""
    n = min(order, window - 1) + 1
    places = [i - at for i in range(window)]
    rows = [[sum(x ** (i + j) for x in places) for j in range(n)] + [float(i == derivative)] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(n):
            if k != i:
                share = rows[k][i] / rows[i][i]
                rows[k] = [x - share * y for x, y in zip(rows[k], rows[i])]
    factor = math.factorial(derivative) if derivative < n else 0
    c = [rows[i][n] / rows[i][i] for i in range(n)]
    return [factor * sum(c[j] * x**j for j in range(n)) for x in places]


def savgol(values, window, order, derivative=0):
    """scipy.signal.savgol_filter of these arguments, mode 'interp', an even window half a sample late."""
    window = min(window, len(values))
    out = []
    for i in range(len(values)):
        if window // 2 <= i < len(values) - window // 2:
            start, at = i - (window - 1) // 2, (window - 1) / 2
        else:
            start = 0 if i < window // 2 else len(values) - window
            at = i - start
        weights = fit_weights(window, order, derivative, at)
        out.append(sum(w * v for w, v in zip(weights, values[start:start + window])) / TICK_S**derivative)
    return out


def comfort(ticks):
    lon, lat = ([tick[name] for tick in ticks] for name in ("accel_mps2", "lat_accel_mps2"))
    heading = [ticks[0]["heading_rad"]]
    for tick in ticks[1:]:
        heading.append(heading[-1] + math.remainder(tick["heading_rad"] - heading[-1], 2 * math.pi))
    lon_f = savgol(lon, 8, 2)
    jerk = savgol(savgol([math.hypot(a, b) for a, b in zip(lon, lat)], 8, 2), 15, 2, 1)
    bounds = ((lon_f, -4.05, 2.40), (savgol(lat, 8, 2), -4.89, 4.89), (savgol(lon_f, 15, 2, 1), -4.13, 4.13),
              (jerk, -8.37, 8.37), (savgol(heading, 5, 2, 1), -0.95, 0.95), (savgol(heading, 5, 3, 2), -1.93, 1.93))
    return {"comfort": float(all(low < value < high for values, low, high in bounds for value in values)),
            "accel_min_mps2": min(lon_f), "jerk_max_mps3": max(map(abs, jerk))}


# ---- roads ----

class Road:
    """Lanes of a map as strips between their borders with discs where strips meet, in squares of a grid."""

    SQUARE_M = 20.0

    def __init__(self, scenario):
        self.map = scenario["map"]
        self.lanes = {lane["id"]: lane for lane in self.map["lanes"]}
        self.strips, self.grid = [], {}
        for lane in self.map["lanes"]:
            self.add_lane(lane)
        for lane in self.map["lanes"]:
            last = [strip for strip in self.strips if strip["lane"] is lane][-1]
            for name in lane["successors"]:
                after = next(strip for strip in self.strips if strip["lane"]["id"] == name)
                if math.dist(last["b"], after["a"]) <= 1.0:
                    last["disc"] = max(last["disc"], min(last["half"][1], after["half"][0]))
        for strip in self.strips:
            self.file(strip)

    def add_lane(self, lane):
        points, widths = lane["centre_line"], lane["width_m"]
        widths = widths if isinstance(widths, list) else [widths] * len(points)
        before = None
        for i, (a, b) in enumerate(zip(points, points[1:])):
            length = math.dist(a, b)
            if length < 1e-6:
                continue
            strip = {"lane": lane, "a": a, "b": b, "length": length, "ux": (b[0] - a[0]) / length,
                     "uy": (b[1] - a[1]) / length, "half": (widths[i] / 2, widths[i + 1] / 2), "disc": 0.0}
            if before is not None:
                before["disc"] = min(before["half"][1], strip["half"][0])
            self.strips.append(strip)
            before = strip

    def file(self, strip):
        side = max(strip["half"]) + 0.5
        steps = int(strip["length"] / self.SQUARE_M) + 1
        for i in range(steps):
            ends = [[strip["a"][k] + t / steps * (strip["b"][k] - strip["a"][k]) for k in (0, 1)] for t in (i, i + 1)]
            low, high = ([f(end[k] for end in ends) for k in (0, 1)] for f in (min, max))
            for column in range(math.floor((low[0] - side) / self.SQUARE_M), math.floor((high[0] + side) / self.SQUARE_M) + 1):
                for row in range(math.floor((low[1] - side) / self.SQUARE_M), math.floor((high[1] + side) / self.SQUARE_M) + 1):
                    square = self.grid.setdefault((column, row), [])
                    if not square or square[-1] is not strip:
                        square.append(strip)

    def near(self, p):
        return self.grid.get((math.floor(p[0] / self.SQUARE_M), math.floor(p[1] / self.SQUARE_M)), ())

    @staticmethod
    def holds(strip, p):
        """2: within the strip, 1: within its disc, 0: not."""
        dx, dy = p[0] - strip["a"][0], p[1] - strip["a"][1]
        along, across = dx * strip["ux"] + dy * strip["uy"], abs(strip["ux"] * dy - strip["uy"] * dx)
        if 0 <= along <= strip["length"]:
            share = along / strip["length"]
            return 2 if across <= strip["half"][0] + share * (strip["half"][1] - strip["half"][0]) else 0
        past = along - strip["length"]
        return 1 if strip["disc"] > 0 and past > 0 and math.hypot(past, across) <= strip["disc"] else 0

    def lanes_at(self, p):
        """Driving lanes that contain a point; discs count where no strip of any lane does."""
        found = [(self.holds(strip, p), strip["lane"]) for strip in self.near(p) if strip["lane"]["kind"] != "sidewalk"]
        best = max((hold for hold, _ in found), default=0)
        return {lane["id"] for hold, lane in found if hold == best > 0 and lane["kind"] == "driving"}

    def lane_at(self, p, heading):
        """Lane of a point and the lane's direction there: driving lanes first, then strips, then the best direction."""
        best = None
        for strip in self.near(p):
            hold = self.holds(strip, p)
            if hold:
                off = abs(math.remainder(heading - math.atan2(strip["uy"], strip["ux"]), 2 * math.pi))
                key = (strip["lane"]["kind"] == "driving", hold, -off)
                if best is None or key > best[0]:
                    best = (key, strip)
        return (best[1]["lane"], best[1]["ux"], best[1]["uy"]) if best else None

    def outside_m(self, p):
        """Distance to what is drivable."""
        if any(self.holds(strip, p) for strip in self.near(p) if strip["lane"]["kind"] != "sidewalk"):
            return 0.0
        areas = self.map.get("drivable", [])
        if any(inside(area, p) for area in areas):
            return 0.0
        best = min((to_segment(p, area[i - 1], area[i]) for area in areas for i in range(len(area))), default=FAR)
        for strip in self.near(p):
            if strip["lane"]["kind"] != "sidewalk":
                best = min(best, strip_outside(strip, p))
        return best


def strip_outside(strip, p):
    rim = []
    for (x, y), half in ((strip["a"], strip["half"][0]), (strip["b"], strip["half"][1])):
        rim.append([(x - side * half * strip["uy"], y + side * half * strip["ux"]) for side in (1, -1)])
    best = min(to_segment(p, *ends) for ends in (rim[0], rim[1], (rim[0][0], rim[1][0]), (rim[0][1], rim[1][1])))
    if strip["disc"] > 0:
        best = min(best, max(0.0, math.dist(p, strip["b"]) - strip["disc"]))
    return best


def inside(area, p):
    odd = False
    for i, (x1, y1) in enumerate(area):
        x0, y0 = area[i - 1]
        if (y0 > p[1]) != (y1 > p[1]) and p[0] < x0 + (p[1] - y0) / (y1 - y0) * (x1 - x0):
            odd = not odd
    return odd


class Route:
    """Centre lines of ego's route, end to end and 200 m on, as chords of about a metre; without `points` where the route
    changes lanes on its way."""

    def __init__(self, road, ego):
        lanes = [road.lanes[name] for name in ego["route"]]
        self.points = None
        if any(b["id"] not in a["successors"] for a, b in zip(lanes, lanes[1:])):
            return
        line, self.carried = [], []
        self.end_m = self.length = self.follow(lanes, line, 0.0)
        while lanes[-1]["successors"] and self.length < self.end_m + 200:
            lanes.append(road.lanes[lanes[-1]["successors"][0]])
            self.length = self.follow(lanes[-1:], line, self.length)
        count = max(1, math.floor(self.length + 0.5))
        self.step = self.length / count
        self.points = list(cut(line, [i * self.step for i in range(count + 1)]))

    def follow(self, lanes, line, length):
        for lane in lanes:
            self.carried.append((length, lane))
            for p in lane["centre_line"]:
                apart = math.dist(line[-1], p) if line else 0.0
                if not line or apart >= 0.001:
                    length += apart
                    line.append(p)
        return length

    def lane_at(self, s):
        return [lane for start, lane in self.carried if start <= s][-1]

    def project(self, p, near=None):
        """(s, distance to the route); near: the s of before, from which a drive goes on."""
        first, last = 0, len(self.points) - 2
        if near is not None:
            first, last = max(0, int((near - 25) / self.step)), min(last, int((near + 105) / self.step))
        nearest = min(range(first, last + 2), key=lambda i: math.dist(p, self.points[i]))
        best = (FAR, 0.0)
        for i in range(max(first, nearest - 2), min(last, nearest + 2) + 1):
            (ax, ay), (bx, by) = self.points[i], self.points[i + 1]
            square = (bx - ax) ** 2 + (by - ay) ** 2
            t = ((p[0] - ax) * (bx - ax) + (p[1] - ay) * (by - ay)) / square if square > 0 else 0.0
            t = min(t, 1.0) if i + 2 < len(self.points) else t
            t = max(t, 0.0) if i > 0 else t
            best = min(best, (math.hypot(p[0] - ax - t * (bx - ax), p[1] - ay - t * (by - ay)), (i + t) * self.step))
        return min(max(best[1], 0.0), self.length), best[0]


def cut(line, places):
    """Points of a line at ascending distances from its beginning."""
    i, before = 0, 0.0
    for s in places:
        while s > before + math.dist(line[i], line[i + 1]) and i + 2 < len(line):
            before += math.dist(line[i], line[i + 1])
            i += 1
        t = min(1.0, (s - before) / math.dist(line[i], line[i + 1]))
        yield tuple(line[i][k] + t * (line[i + 1][k] - line[i][k]) for k in (0, 1))


# ---- metrics ----

class Drive:
    def __init__(self, scenario, road, ticks):
        self.scenario, self.road, self.ticks = scenario, road, ticks
        self.ego = scenario["ego"]
        self.boxes = [box_of(tick, self.ego["length_m"], self.ego["width_m"]) for tick in ticks]

    def metrics(self):
        out = {"ticks": self.ticks[-1]["tick"], **comfort(self.ticks), **self.contacts(), **self.motion(), **self.places()}
        out["ttc"] = float(out["min_ttc_s"] > 0.95)
        out["no_at_fault_collision"] = float(not out["at_fault"])
        guarded = [False] + [tick["guardian"] for tick in self.ticks]
        out["intervention_count"] = sum(b and not a for a, b in zip(guarded, guarded[1:]))
        return out

    def rear_axle(self, at):
        x, y, c, s, _, _ = self.boxes[at]
        back = self.ego["wheelbase_m"] / 2
        return x - back * c, y - back * s

    def several_lanes(self, at):
        front_left, rear_left, rear_right, front_right = (self.road.lanes_at(p) for p in corners(self.boxes[at]))
        if not (front_left and rear_left and rear_right and front_right):
            return True
        def after(name):
            return self.road.lanes[name]["successors"]
        def behind(lanes, name):
            return name in lanes or any(name in after(lane) for lane in lanes)
        def ahead(lanes, name):
            return name in lanes or any(lane in lanes for lane in after(name))
        return not any(behind(rear_left, name) and behind(rear_right, name) and ahead(front_left, name) and
                       ahead(front_right, name) for name in self.road.lanes)

    def in_junction(self, at):
        return any(self.road.lanes[name]["intersection"] for name in self.road.lanes_at(self.rear_axle(at)))

    def kind(self, at, box, speed):
        """Kind of a contact and whether it is ego's fault."""
        ego = self.boxes[at]
        if self.ticks[at]["speed_mps"] <= 0.05:
            return "stopped_ego", False
        if abs(speed) <= 0.05:
            return "stopped_track", True
        if self.bearing(at, box) > 150:
            return "rear", False
        edge = (ego[0] + ego[4] * ego[2], ego[1] + ego[4] * ego[3], ego[2], ego[3], 0.0, ego[5])
        if gap(edge, box) <= TOUCH_M:
            return "front", True
        return "lateral", self.several_lanes(at)

    def bearing(self, at, box):
        rear = self.rear_axle(at)
        turned = math.atan2(box[1] - rear[1], box[0] - rear[0]) - math.atan2(self.boxes[at][3], self.boxes[at][2])
        return abs(math.degrees(math.remainder(turned, 2 * math.pi)))

    def ttc_steps(self, at, box, speed, below):
        """First step below `below` at which boxes that go straight on touch."""
        ego, ego_speed = self.boxes[at], self.ticks[at]["speed_mps"]
        reach = math.hypot(ego[4], ego[5]) + math.hypot(box[4], box[5])
        rate = (speed * box[2] - ego_speed * ego[2], speed * box[3] - ego_speed * ego[3])
        offset = (box[0] - ego[0], box[1] - ego[1])
        aside = None
        for step in range(1, min(below, TTC_STEPS + 1)):
            x, y = (offset[k] + rate[k] * step * TICK_S for k in (0, 1))
            if x * x + y * y > (reach + TOUCH_M) ** 2:
                continue
            if aside is None:
                bearing = self.bearing(at, box)
                aside = bearing < 30 or bearing <= 150 and (self.several_lanes(at) or self.in_junction(at))
            if not aside:
                return below
            if gap(ego, (ego[0] + x, ego[1] + y) + box[2:]) <= TOUCH_M:
                return step
        return below

    def contacts(self):
        touched, kept = set(), self.scenario["agents"]
        out = {"min_distance_m": FAR, "collision_count": 0, "collision_tick": None, "collision_agent": -1,
               "collision_kind": "none", "impact_speed_mps": None, "at_fault": False, "impact_max": -FAR}
        steps = TTC_STEPS + 1
        for at, tick in enumerate(self.ticks):
            ego, fault = self.boxes[at], False
            for state in sorted(tick["agents"], key=lambda state: state["agent"]):
                index, speed = state["agent"], state["speed_mps"]
                if index in touched:
                    continue
                box = box_of(state, kept[index]["length_m"], kept[index]["width_m"])
                circles = math.hypot(ego[4], ego[5]) + math.hypot(box[4], box[5])
                apart = math.hypot(box[0] - ego[0], box[1] - ego[1]) - circles
                if apart <= out["min_distance_m"]:
                    out["min_distance_m"] = min(out["min_distance_m"], distance := clearance(ego, box))
                    if distance == 0:
                        touched.add(index)
                        fault = self.touch(out, at, index, box, speed) or fault
                        continue
                if tick["speed_mps"] > 0.005:
                    steps = self.ttc_steps(at, box, speed, steps)
            steps = 0 if fault else steps
        out["min_ttc_s"] = FAR if steps > TTC_STEPS else steps * TICK_S
        return out

    def touch(self, out, at, index, box, speed):
        kind, fault = self.kind(at, box, speed)
        ego, own = self.boxes[at], self.ticks[at]["speed_mps"]
        impact = math.hypot(own * ego[2] - speed * box[2], own * ego[3] - speed * box[3])
        if out["collision_count"] == 0:
            out.update(collision_tick=self.ticks[at]["tick"], collision_agent=index, collision_kind=kind,
                       impact_speed_mps=impact)
        out["collision_count"] += 1
        out["at_fault"] = out["at_fault"] or fault
        out["impact_max"] = max(out["impact_max"], impact)
        return fault

    def limit(self, at, lane):
        """Posted limit where ego is; in a junction the highest of the lanes before and after those that hold ego."""
        if not lane["intersection"]:
            return lane["speed_limit_mps"] or 0.0
        here = self.road.lanes_at(self.boxes[at][:2])
        found = []
        for other in self.road.lanes.values():
            for name in other["successors"]:
                if other["intersection"] and other["id"] in here:
                    found.append(self.road.lanes[name])
                if self.road.lanes[name]["intersection"] and name in here:
                    found.append(other)
        limits = [other["speed_limit_mps"] or 0.0 for other in found]
        return max(limits) if limits and all(limits) else 0.0

    def motion(self):
        """Distance, speeds, direction, limits, drivable area."""
        distance = over = off = 0.0
        along = []
        for at, (tick, box) in enumerate(zip(self.ticks, self.boxes)):
            x, y = (box[k] - self.boxes[at - 1][k] if at else 0.0 for k in (0, 1))
            distance += math.hypot(x, y)
            off = max(off, max(self.road.outside_m(p) for p in corners(box)))
            found = self.road.lane_at(box[:2], tick["heading_rad"])
            along.append(0.0)
            if found:
                lane, ux, uy = found
                if lane["kind"] in ("driving", "shoulder"):
                    along[-1] = x * ux + y * uy
                limit = self.limit(at, lane)
                over += max(0.0, tick["speed_mps"] - limit) if limit > 0 else 0.0
        wrong = max([0.0] + [-sum(along[max(0, i - 9):i + 1]) for i in range(len(along))])
        seconds = (len(self.ticks) - 1) * TICK_S
        return {"distance_m": distance, "speed_max_mps": max(tick["speed_mps"] for tick in self.ticks),
                "drivable_area": float(off < 0.3), "driving_direction": 1.0 if wrong < 2 else 0.5 if wrong < 6 else 0.0,
                "speed_limit": max(0.0, 1 - over * TICK_S / (2.23 * seconds)) if seconds else 1.0}

    def places(self):
        """Metrics of places along the route; none where it changes lanes."""
        route = Route(self.road, self.ego)
        goal = self.ego.get("goal")
        out = {}
        if goal and not set(goal) - {"x_m", "y_m", "radius_m"}:
            out["goal_reached"] = any(math.hypot(box[0] - goal["x_m"], box[1] - goal["y_m"]) <= goal["radius_m"]
                                      for box in self.boxes)
        if route.points is None:
            return out
        near, run, kept, found = None, 0, True, []
        for box in self.boxes:
            near, aside = route.project(box[:2], near)
            found.append(near)
            if not route.lane_at(near)["intersection"]:
                run = run + 1 if aside > 0.5 else 0
                kept = kept and run < 20
        end = min(route.end_m, route.project((goal["x_m"], goal["y_m"]))[0]) if goal else route.end_m
        if not goal:
            out["goal_reached"] = any(s >= end for s in found)
        progress = found[-1] - found[0]
        expected = self.expected(route, end)
        out.update(progress_m=progress, lane_keeping=float(kept),
                   progress=0.0 if progress < -0.1 else min(1.0, max(progress, 0.1) / max(expected, 0.1)))
        out["making_progress"] = float(out["progress"] >= 0.2)
        return out

    def expected(self, route, end):
        seconds = self.scenario["horizon_s"]
        if "expected_progress_m" in self.scenario["criteria"]:
            return self.scenario["criteria"]["expected_progress_m"]
        if len(self.ego.get("log", [])) >= 2:
            return self.logged(route, seconds)
        start = route.project((self.ego["pose"]["x_m"], self.ego["pose"]["y_m"]))[0]
        limit, speed = route.lane_at(start)["speed_limit_mps"] or 0.0, self.ego["speed_mps"]
        if speed > 1.0:
            free = min(speed, limit or speed) * seconds
        else:
            top = limit or 30 / 3.6
            rising = min(max(top - speed, 0.0), seconds)
            free = speed * rising + rising**2 / 2 + (speed + rising) * (seconds - rising)
        return min(max(0.0, end - start), free)

    def logged(self, route, seconds):
        log = self.ego["log"]
        start = near = route.project(log[0][1:3])[0]
        for a, b in zip(log, log[1:]):
            if a[0] >= seconds:
                break
            share = min(1.0, (seconds - a[0]) / (b[0] - a[0]))
            near = route.project([a[k] + share * (b[k] - a[k]) for k in (1, 2)], near)[0]
        return near - start


def score(m):
    """[A]: the weighted mean of four, times four that are all or nothing."""
    whole = 5 * m["progress"] + 5 * m["ttc"] + 4 * m["speed_limit"] + 2 * m["comfort"]
    return m["no_at_fault_collision"] * m["drivable_area"] * m["making_progress"] * m["driving_direction"] * whole / 16


def reasons(m, criteria):
    """Criteria that are not met; signals are not in traces."""
    def below(name, metric):
        return criteria.get(name) is not None and m[metric] < criteria[name]
    def above(name, value):
        return criteria.get(name) is not None and value > criteria[name]
    rules = {"at_fault_collision": criteria["no_at_fault_collision"] and m["at_fault"],
             "collision": criteria["no_collision"] and m["collision_count"] > 0,
             "off_drivable": criteria["stay_drivable"] and m["drivable_area"] == 0,
             "wrong_direction": criteria["right_direction"] and m["driving_direction"] == 0,
             "goal_not_reached": criteria["reach_goal"] and not m["goal_reached"],
             "uncomfortable": criteria["comfortable"] and m["comfort"] == 0,
             "ttc": below("min_ttc_s", "min_ttc_s"), "distance": below("min_distance_m", "min_distance_m"),
             "impact_speed": above("impact_speed_max_mps", m["impact_max"]), "progress": below("progress_min", "progress"),
             "score": below("score_min", "score"), "speed": above("speed_max_mps", m["speed_max_mps"])}
    return {name for name, broken in rules.items() if broken}
