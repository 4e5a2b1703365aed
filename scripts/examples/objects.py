#!/usr/bin/env python3
"""A planner that is given objects and a map, and answers with trajectories.

    swerve run SUITE --world object --planner "exec:python3 scripts/examples/objects.py"
    swerve run SUITE --world object --planner "seen+exec:python3 scripts/examples/objects.py"

It follows the centre of its route at the posted speed, and plans to stop behind whatever its path will meet within
four seconds, if that goes on as it does now. The second command shows it of the objects only what its sensors see.
"""
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import swerve_planner


class Follower(swerve_planner.Planner):
    wants = swerve_planner.OBJECTS | swerve_planner.MAP
    tracker = swerve_planner.LQR
    name = "objects"

    def reset(self, episode):
        limits = [episode.map.lanes[lane].speed_limit_mps for lane in episode.map.route]
        self.limit_mps = min([limit for limit in limits if limit > 0], default=13.9)
        self.half_m = episode.ego_length_m / 2

    def act(self, observation):
        path = route_in_world(observation)
        speed = observation.speed_mps
        stop_m = min((self.meets_at(path, one) for one in observation.objects), default=math.inf)
        points, s_m = [], 0.0
        for step in range(1, 41):
            room_m = stop_m - s_m - self.half_m - 3.0
            target = min(self.limit_mps, math.sqrt(2 * 2.5 * room_m) if room_m > 0 else 0.0)
            speed += max(-0.7, min(0.15, target - speed))
            speed = max(speed, 0.0)
            s_m += 0.1 * speed
            points.append(swerve_planner.Point(0.1 * step, *at(path, s_m), speed))
        return points

    def meets_at(self, path, one):
        """Distance along the path at which something will stand in it within 4 s; infinity: not at all."""
        for step in range(0, 41, 5):
            x = one.x_m + 0.1 * step * one.vx_mps
            y = one.y_m + 0.1 * step * one.vy_mps
            for s_m, px, py, heading in path[1:]:
                across = -(x - px) * math.sin(heading) + (y - py) * math.cos(heading)
                along = (x - px) * math.cos(heading) + (y - py) * math.sin(heading)
                if abs(along) <= 2.0 and abs(across) < 1.3 + one.width_m / 2:
                    return s_m + along - one.length_m / 2
        return math.inf


def route_in_world(observation):
    """The route ahead as (s_m, x_m, y_m, heading_rad)."""
    c, s = math.cos(observation.heading_rad), math.sin(observation.heading_rad)
    points = [(observation.x_m + c * p.x_m - s * p.y_m, observation.y_m + s * p.x_m + c * p.y_m)
              for p in observation.route]
    path = []
    for i, (x, y) in enumerate(points):
        j = min(i, len(points) - 2)
        heading = math.atan2(points[j + 1][1] - points[j][1], points[j + 1][0] - points[j][0])
        path.append((i * 4.0, x, y, heading))
    return path


def at(path, s_m):
    """x_m, y_m, heading_rad at a distance along the path."""
    i = min(int(s_m // 4.0), len(path) - 2)
    share = s_m / 4.0 - i
    (_, ax, ay, heading), (_, bx, by, _) = path[i], path[i + 1]
    return ax + share * (bx - ax), ay + share * (by - ay), heading


swerve_planner.run(Follower)
