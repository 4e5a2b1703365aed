"""The law of eyes.h in Python, through the sensors of a rig."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402


class Eyes(swerve_planner.Planner):
    sensors = [("wide", "jpeg:90"), "bev", "small"] if len(sys.argv) < 2 else sys.argv[1:]

    def act(self, observation):
        accel = steer = 0.0
        for i, name in enumerate(("wide", "bev", "small")):
            sensor = observation.sensors[name]
            data = bytes(sensor.frame)
            accel -= (data[0] + 3.0 * data[-1] + 5.0 * data[len(data) // 2]) * 0.0009765625 * (i + 1)
            steer += sensor.time_ns[-1] * 2.0**-40
            steer += (sensor.width + 2.0 * sensor.height) * 2.0**-20
        return accel, steer


swerve_planner.run(Eyes)
