#!/usr/bin/env python3
"""Makes realism.txt: what the Waymo Open Dataset's own functions say of made-up traffic: features and likelihoods.

usage: PYTHONPATH=waymo-open-dataset/src realism_vectors.py waymo-open-dataset/src > realism.txt      (a checkout)

Called are compute_kinematic_features, compute_distance_to_nearest_object, compute_time_to_collision_with_object_in_front and
compute_scenario_metrics_for_features_bundle with the configuration of the sim agents challenge of 2025; in double precision,
for what they name float32. Needs tensorflow and tensorflow-probability; messages are replaced by plain objects and modules
that are not called by empty ones. Flags of leaving the road are made up, and the features that Swerve does not have are constant.
Run again only when the cases change; the test needs the text alone.

Lines: `scene OBJECTS STEPS ROLLOUTS`; for each object LENGTH WIDTH VEHICLE EVALUATED; for the recording, then each rollout, object by
object and step by step X Y HEADING VALID OFF_ROAD; of the recording's evaluated objects a line for each of six features; the eight
likelihoods and their weighted mean.
"""
import importlib.abc
import importlib.machinery
import os
import re
import sys
import types
from unittest.mock import MagicMock

import numpy as np
import tensorflow as tf

ABSENT = ("waymo_open_dataset.protos", "waymo_open_dataset.label_pb2", "waymo_open_dataset.utils.sim_agents",
          "waymo_open_dataset.wdl_limited.sim_agents_metrics.metric_features", "sklearn")
STEP_S = 0.1
SERIES = ("linear_speed", "linear_acceleration", "angular_speed", "angular_acceleration", "distance_to_nearest_object",
          "time_to_collision")
FLAGS = ("collision_indication", "offroad_indication")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith(ABSENT) else None

    def create_module(self, spec):
        module = MagicMock()
        module.__path__, module.__name__, module.__spec__ = [], spec.name, spec
        return module

    def exec_module(self, module):
        pass


class Wide:
    """TensorFlow, in which float32 is float64."""

    float32 = tf.float64

    @staticmethod
    def fill(dims, value):
        return tf.fill(dims, tf.constant(value, tf.float64) if isinstance(value, float) else value)

    def __getattr__(self, name):
        return getattr(tf, name)


sys.meta_path.insert(0, Absent())
from waymo_open_dataset.utils import box_utils, geometry_utils, transform_utils  # noqa: E402
from waymo_open_dataset.wdl_limited.sim_agents_metrics import (  # noqa: E402
    estimators, interaction_features, metrics, trajectory_features)

for module in (estimators, interaction_features, metrics, trajectory_features, box_utils, geometry_utils, transform_utils):
    module.tf = Wide()
estimators.sim_agents_metrics_pb2.SimAgentMetricsConfig.HistogramEstimate = types.SimpleNamespace
metrics.sim_agents_metrics_pb2.SimAgentMetrics = types.SimpleNamespace
metrics.scenario_pb2.Track.ObjectType.TYPE_VEHICLE = 1


class Feature:
    """A feature's configuration, from the text of the file."""

    aggregate_objects = False

    def __init__(self, text):
        number = lambda name, other: float((re.search(rf"{name}: ([-\d.]+)", text) or [0, other])[1])
        self.kind = "bernoulli" if "bernoulli" in text else "histogram"
        self.histogram = types.SimpleNamespace(
            min_val=number("min_val", 0), max_val=number("max_val", 0), num_bins=int(number("num_bins", 0)),
            additive_smoothing_pseudocount=number("additive_smoothing_pseudocount", 0.001))
        self.bernoulli = types.SimpleNamespace(additive_smoothing_pseudocount=0.001)
        self.independent_timesteps = "independent_timesteps: true" in text
        self.metametric_weight = number("metametric_weight", 0)

    def WhichOneof(self, group):
        return self.kind


def configuration(folder):
    name = "waymo_open_dataset/wdl_limited/sim_agents_metrics/challenge_2025_sim_agents_config.textproto"
    with open(os.path.join(folder, name)) as file:
        parts = re.split(r"\n(?=\w+: \{\n)", file.read())
    return types.SimpleNamespace(**{part.split(":")[0]: Feature(part) for part in parts if re.match(r"\w+: \{\n", part)})


def traffic(rng, size, steps, start):
    """Objects that drive on from their starts with changing speeds and headings: X, Y, HEADING by object and step."""
    x, y, heading, speed = (column.copy() for column in start)
    made = np.zeros((size, steps, 3))
    accel, turn = rng.normal(0, 1, size), rng.normal(0, 0.05, size)
    for step in range(steps):
        made[:, step] = np.stack([x, y, heading], axis=1)
        accel, turn = 0.9 * accel + rng.normal(0, 0.6, size), 0.9 * turn + rng.normal(0, 0.03, size)
        speed = np.maximum(0, speed + STEP_S * accel)
        heading = heading + STEP_S * turn
        x, y = x + STEP_S * speed * np.cos(heading), y + STEP_S * speed * np.sin(heading)
    return np.round(made, 6)


def features(states, valid, off, length, width, evaluated, vehicle):
    columns = [tf.constant(states[:, :, i], tf.float64) for i in range(3)]
    sizes = [tf.constant(np.repeat(each[:, None], states.shape[1], axis=1), tf.float64) for each in (length, width)]
    zero, mask = tf.zeros_like(columns[0]), tf.constant(evaluated)
    kinematic = [each.numpy()[evaluated] for each in trajectory_features.compute_kinematic_features(
        columns[0], columns[1], zero, columns[2], STEP_S)]
    nearest = interaction_features.compute_distance_to_nearest_object(
        center_x=columns[0], center_y=columns[1], center_z=zero, length=sizes[0], width=sizes[1], height=zero + 1.5,
        heading=columns[2], valid=tf.constant(valid), evaluated_object_mask=mask).numpy()
    ttc = interaction_features.compute_time_to_collision_with_object_in_front(
        center_x=columns[0], center_y=columns[1], length=sizes[0], width=sizes[1], heading=columns[2],
        valid=tf.constant(valid), evaluated_object_mask=mask, seconds_per_step=STEP_S).numpy()
    found = dict(zip(SERIES, [*kinematic, nearest, ttc]))
    found |= {"collision_per_step": nearest < 0, "offroad_per_step": off[evaluated], "valid": valid[evaluated],
              "object_type": np.where(vehicle, 1, 2)[evaluated], "distance_to_road_edge": 0 * nearest,
              "traffic_light_violation_per_step": np.zeros(nearest.shape, bool), "average_displacement_error": 0 * nearest[:, 0]}
    return found


def bundle(several):
    return types.SimpleNamespace(**{name: tf.constant(np.stack([each[name] for each in several])) for name in several[0]})


def show(*values):
    print(*(format(float(value), ".12g") for value in values))


def scene(rng, config, size, steps, rollouts):
    start = (rng.uniform(0, 60, size), rng.choice([0, 3.5], size) + rng.normal(0, 0.3, size), rng.normal(0, 0.1, size),
             rng.uniform(0, 15, size))
    length, width = rng.uniform(1, 6, size).round(3), rng.uniform(0.6, 2.2, size).round(3)
    vehicle, evaluated = rng.random(size) < 0.8, rng.random(size) < 0.8
    vehicle[0] = evaluated[0] = True
    print("scene", size, steps, rollouts)
    for i in range(size):
        show(length[i], width[i], vehicle[i], evaluated[i])
    found = []
    for number in range(rollouts + 1):
        states = traffic(rng, size, steps, start)
        valid = np.ones((size, steps), bool) if number > 0 else np.repeat(rng.random((size, steps // 5 + 1)) < 0.9, 5, axis=1)[:, :steps]
        off = np.repeat(rng.random((size, 1)) < 0.3, steps, axis=1) & (rng.random((size, steps)) < 0.5)
        for i in range(size):
            for step in range(steps):
                show(*states[i, step], valid[i, step], off[i, step])
        found.append(features(states, valid, off, length, width, evaluated, vehicle))
    for i in range(int(evaluated.sum())):
        for name in SERIES:
            show(*found[0][name][i])
    said = metrics.compute_scenario_metrics_for_features_bundle(config, "made up", bundle(found[:1]), bundle(found[1:]))
    likelihoods = [getattr(said, name + "_likelihood") for name in SERIES + FLAGS]
    weights = [getattr(config, name).metametric_weight for name in SERIES + FLAGS]
    show(*likelihoods, np.dot(likelihoods, weights) / sum(weights))


def main():
    config, rng = configuration(sys.argv[1]), np.random.default_rng(1)
    for size, steps, rollouts in ((2, 12, 1), (4, 25, 3), (6, 30, 2), (5, 20, 8)):
        scene(rng, config, size, steps, rollouts)


if __name__ == "__main__":
    main()
