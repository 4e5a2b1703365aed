"""A minimal Swerve planner: keep the lane, brake for what the lidar sees straight ahead. It takes everything for
standing still and sees nothing coming from the side; drive.py, beside this file, does.

swerve run SUITE --planner 'exec:python3 scripts/examples/follow.py'
"""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import swerve_planner  # noqa: E402


class Follow(swerve_planner.Planner):
    wants = swerve_planner.BEV
    name = "example-follow"

    def reset(self, episode):
        self.world = episode.world
        self.wheelbase_m = episode.ego_wheelbase_m

    def act(self, observation):
        target = observation.route[min(3, len(observation.route) - 1)]
        ahead = target.x_m + self.wheelbase_m / 2
        steer = math.atan(2 * self.wheelbase_m * target.y_m / (ahead**2 + target.y_m**2))
        limit = observation.route[0].speed_limit_mps or 13.9
        # Deceleration that stops ego 6 m before it, from its centre on; sooner and gently rather than late and hard.
        needed = observation.speed_mps**2 / (2 * max(self.gap_m(observation.bev) - 6.0, 0.1))
        accel = -1.2 * needed if needed > 1.5 else limit - observation.speed_mps
        return max(-8.0, min(1.5, accel)), steer

    def gap_m(self, bev):
        """Distance from ego's centre to the first occupied cell within 1.5 m of straight ahead."""
        cell, rows, middle = self.world.bev_cell_m, self.world.bev_shape[1], self.world.bev_shape[2] // 2
        for row in range(int(-self.world.bev_x_min_m / cell) + 5, rows):
            if any(bev[0, row, col] > 64 for col in range(middle - 3, middle + 3)):
                return self.world.bev_x_min_m + row * cell
        return 1e3


if __name__ == "__main__":
    swerve_planner.run(Follow)
