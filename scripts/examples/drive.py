"""A planner that drives well on the lidar grid alone, with no library: it follows the route, finds objects in the
grid, tracks how they move, and brakes for what is in its way or will be when it gets there.

swerve run SUITE --planner 'exec:python3 scripts/examples/drive.py'
"""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import swerve_planner  # noqa: E402

WEAK, MASS = 24, 130  # returns of a cell, of 255, and of an object; a stray one has at most 96
COMFORT_MPS2, BRAKE_MPS2, HARDEST_MPS2 = 1.6, 3.0, 8.0
HEADWAY_S, STANDSTILL_M, STEP_M = 1.2, 3.0, 0.5
MARKED = bytes(value >= WEAK for value in range(256))


class Object:
    """A connected set of returns: cells, middle (ego frame), place and velocity (world frame)."""

    def __init__(self, cells, x_m, y_m):
        self.cells, self.x_m, self.y_m = cells, x_m, y_m
        self.place, self.velocity, self.age = None, (0.0, 0.0), 0


class Drive(swerve_planner.Planner):
    wants = swerve_planner.BEV
    name = "example-drive"

    def reset(self, episode):
        self.world, self.tick_s, self.objects = episode.world, episode.tick_s, []
        self.wheelbase_m, self.front_m = episode.ego_wheelbase_m, episode.ego_length_m / 2
        self.half_m = episode.ego_width_m / 2 + 0.3

    def act(self, observation):
        self.objects = self.tracked(observation, self.seen(observation.bev.tobytes()))
        path = self.path(observation.route)
        way = self.corridor(path)
        speed = observation.speed_mps
        accel = COMFORT_MPS2 * (1 - (speed / max(self.wanted_mps(observation, path), 0.1)) ** 4)
        for each in self.objects:
            conflict = self.conflict(each, observation, path, way)
            if conflict is not None:
                accel = min(accel, self.follow(speed, *conflict))
        return max(-HARDEST_MPS2, min(COMFORT_MPS2, accel)), self.steer(observation.route, speed)

    def seen(self, grid):
        """Objects: connected cells of the occupancy channel."""
        _, rows, cols = self.world.bev_shape
        marks, found = bytearray(grid[: rows * cols].translate(MARKED)), []
        around = [row * cols + col for row in (-1, 0, 1) for col in (-1, 0, 1) if (row, col) != (0, 0)]
        start = marks.find(1)
        while start >= 0:
            marks[start], stack, cells, mass, x, y = 0, [start], [], 0, 0.0, 0.0
            while stack:
                at = stack.pop()
                row, col = divmod(at, cols)
                cells.append((row, col))
                mass, x, y = mass + grid[at], x + grid[at] * row, y + grid[at] * col
                for near in (at + step for step in around):
                    if 0 <= near < rows * cols and marks[near] and abs(near % cols - col) <= 1:
                        marks[near] = 0
                        stack.append(near)
            if mass >= MASS:
                x_m = self.world.bev_x_min_m + (x / mass + 0.5) * self.world.bev_cell_m
                found.append(Object(cells, x_m, self.world.bev_y_min_m + (y / mass + 0.5) * self.world.bev_cell_m))
            start = marks.find(1, start)
        return found

    def tracked(self, ego, objects):
        """Gives each object the velocity of the nearest one of the last tick, moved on."""
        cos, sin = math.cos(ego.heading_rad), math.sin(ego.heading_rad)
        for each in objects:
            each.place = (ego.x_m + cos * each.x_m - sin * each.y_m, ego.y_m + sin * each.x_m + cos * each.y_m)
            best, best_m = None, 2.0
            for old in self.objects:
                moved = [place + velocity * self.tick_s for place, velocity in zip(old.place, old.velocity)]
                if math.dist(moved, each.place) < best_m:
                    best, best_m = old, math.dist(moved, each.place)
            if best is not None:
                each.age = best.age + 1
                share = max(0.3, 1 / each.age)
                each.velocity = tuple((1 - share) * before + share * (now - then) / self.tick_s
                                      for before, now, then in zip(best.velocity, each.place, best.place))
        return objects

    def path(self, route):
        """(x, y, dx, dy) every half metre along the route, in ego's frame."""
        points, count = [], int(self.world.route_step_m / STEP_M)
        for here, there in zip(route, route[1:]):
            x_m, y_m = (there.x_m - here.x_m) / count, (there.y_m - here.y_m) / count
            step_m = max(math.hypot(x_m, y_m), 1e-6)
            points += [(here.x_m + part * x_m, here.y_m + part * y_m, x_m / step_m, y_m / step_m) for part in range(count)]
        return points

    def cell(self, x_m, y_m):
        return (math.floor((x_m - self.world.bev_x_min_m) / self.world.bev_cell_m),
                math.floor((y_m - self.world.bev_y_min_m) / self.world.bev_cell_m))

    def corridor(self, path):
        """The cells that ego's body will sweep, each with the point of the path that it belongs to."""
        way, count = {}, math.ceil(self.half_m / 0.4)
        for index, (x_m, y_m, dx, dy) in enumerate(path):
            for side in range(-count, count + 1):
                aside_m = side * self.half_m / count
                way.setdefault(self.cell(x_m - dy * aside_m, y_m + dx * aside_m), index)
        return way

    def wanted_mps(self, ego, path):
        """The posted limit, less before a bend."""
        wanted = ego.route[0].speed_limit_mps or 13.9
        for index in range(0, len(path) - 12, 6):
            (_, _, ax, ay), (_, _, bx, by) = path[index], path[index + 12]
            bend = abs(math.atan2(ax * by - ay * bx, ax * bx + ay * by)) / (12 * STEP_M)
            wanted = min(wanted, math.sqrt(2.5 / max(bend, 1e-3) + 2 * 1.5 * index * STEP_M))
        return wanted

    def conflict(self, each, ego, path, way):
        """(gap, speed along the path) of what is in ego's way, or will be when ego is there; else None."""
        cos, sin = math.cos(ego.heading_rad), math.sin(ego.heading_rad)
        vx, vy = (cos * each.velocity[0] + sin * each.velocity[1], cos * each.velocity[1] - sin * each.velocity[0])
        first = min((way[cell] for cell in each.cells if cell in way), default=None)
        if first is not None:
            along_mps = vx * path[first][2] + vy * path[first][3]
            return (first * STEP_M - self.front_m, along_mps) if first > 0 else None
        for step in range(1, 12) if each.age >= 2 and math.hypot(vx, vy) > 0.4 else ():
            first = way.get(self.cell(each.x_m + vx * 0.35 * step, each.y_m + vy * 0.35 * step), 0)
            gap_m = first * STEP_M - self.front_m
            if gap_m > 0 and gap_m / max(ego.speed_mps, 1.0) < 0.35 * step + 1.5:
                return gap_m, max(vx * path[first][2] + vy * path[first][3], 0.0)

    def follow(self, speed, gap_m, along_mps):
        """The intelligent driver model, and harder where that would be too late."""
        closing, gap_m = speed - along_mps, max(gap_m, 0.1)
        brake_m = speed * closing / (2 * math.sqrt(COMFORT_MPS2 * BRAKE_MPS2))
        accel = COMFORT_MPS2 * (1 - ((STANDSTILL_M + max(0.0, speed * HEADWAY_S + brake_m)) / gap_m) ** 2)
        needed = max(closing, 0.0) ** 2 / (2 * max(gap_m - 1.0, 0.1))
        return min(accel, -1.3 * needed) if needed > BRAKE_MPS2 else max(accel, -2 * BRAKE_MPS2)

    def steer(self, route, speed):
        """Pure pursuit from the rear axle."""
        target = route[min(len(route) - 1, max(1, round(max(4.0, 0.6 * speed) / self.world.route_step_m)))]
        ahead_m = target.x_m + self.wheelbase_m / 2
        return math.atan(2 * self.wheelbase_m * target.y_m / (ahead_m**2 + target.y_m**2))


if __name__ == "__main__":
    swerve_planner.run(Drive)
