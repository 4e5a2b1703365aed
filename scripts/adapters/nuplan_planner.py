#!/usr/bin/env python3
"""Drives Swerve with an unmodified nuPlan planner (an AbstractPlanner of nuplan-devkit).

    swerve run SUITE --world object --planner "exec:python3 scripts/adapters/nuplan_planner.py CLASS KEY=VALUE.."

CLASS is a dotted path such as nuplan.planning.simulation.planner.idm_planner.IDMPlanner; KEY=VALUE are its
constructor's arguments as Python literals. nuplan-devkit must be importable (PYTHONPATH) with what it needs.

The planner gets what nuPlan's simulation gives it: 2 s of history at 10 Hz, tracked objects, the route as roadblocks,
a map, the states of traffic lights. Its trajectory is followed by nuPlan's LQR tracker, as nuPlan's two-stage
controller does, but moves Swerve's car. `seen+exec:..` leaves of the objects what sensors see.

Lanes of the same direction beside one another are a roadblock, those of junctions a roadblock connector. Of the map,
lanes, connectors, roadblocks and crossings can be asked for; other layers are refused with a sentence. Animals are
tracked as pedestrians. Before tick 0 ego and objects stand still where they are at tick 0.
"""
import ast
import collections
import importlib
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import swerve_planner
from nuplan.common.actor_state.agent import Agent
from nuplan.common.actor_state.ego_state import EgoState
from nuplan.common.actor_state.oriented_box import OrientedBox
from nuplan.common.actor_state.scene_object import SceneObjectMetadata
from nuplan.common.actor_state.state_representation import Point2D, StateSE2, StateVector2D, TimePoint
from nuplan.common.actor_state.static_object import StaticObject
from nuplan.common.actor_state.tracked_objects import TrackedObjects
from nuplan.common.actor_state.tracked_objects_types import TrackedObjectType
from nuplan.common.actor_state.vehicle_parameters import VehicleParameters
from nuplan.common.maps.maps_datatypes import SemanticMapLayer, TrafficLightStatusData, TrafficLightStatusType
from nuplan.planning.simulation.history.simulation_history_buffer import SimulationHistoryBuffer
from nuplan.planning.simulation.observation.observation_type import DetectionsTracks
from nuplan.planning.simulation.planner.abstract_planner import PlannerInitialization, PlannerInput
from nuplan.planning.simulation.simulation_time_controller.simulation_iteration import SimulationIteration
from shapely.geometry import LineString, Point, Polygon

HISTORY_TICKS = 20  # nuPlan's history buffer of 2 s
START_US = 10_000_000  # so that what lies before tick 0 has times above 0
ROUTE_BEYOND_M = 200.0
KINDS = {"cyclist": TrackedObjectType.BICYCLE, "pedestrian": TrackedObjectType.PEDESTRIAN,
         "animal": TrackedObjectType.PEDESTRIAN, "object": TrackedObjectType.GENERIC_OBJECT}
LIGHTS = {"red": TrafficLightStatusType.RED, "red_yellow": TrafficLightStatusType.RED,
          "yellow": TrafficLightStatusType.YELLOW, "green": TrafficLightStatusType.GREEN}


class Fixed:
    """Something of the map: forks share it."""

    def __deepcopy__(self, memo):
        return self


class Baseline(Fixed):
    """A lane's centre line, a pose every metre or less: nuPlan's paths are that dense, and its planners drop ends."""

    def __init__(self, lane):
        self.linestring = LineString(lane.centre)
        self.length = self.linestring.length
        self.discrete_path = []
        for (ax, ay), (bx, by) in zip(lane.centre, lane.centre[1:]):
            steps = max(1, math.ceil(math.dist((ax, ay), (bx, by))))
            heading = math.atan2(by - ay, bx - ax)
            self.discrete_path += [StateSE2(ax + (bx - ax) * i / steps, ay + (by - ay) * i / steps, heading)
                                   for i in range(steps)]
        self.discrete_path.append(StateSE2(*lane.centre[-1], heading))


class Edge(Fixed):
    """A lane or lane connector."""

    def __init__(self, city, lane):
        self._city = city
        self.lane = lane
        self.id = str(lane.index)
        self.baseline_path = Baseline(lane)
        self.polygon = Polygon(lane.left_border + lane.right_border[::-1]).buffer(0)
        self.speed_limit_mps = lane.speed_limit_mps or None
        self.block = None

    incoming_edges = property(lambda self: [self._city.edges[i] for i in self.lane.predecessors if i in self._city.edges])
    outgoing_edges = property(lambda self: [self._city.edges[i] for i in self.lane.successors if i in self._city.edges])
    parent = property(lambda self: self.block)

    def get_roadblock_id(self):
        return self.block.id

    def contains_point(self, point):
        return self.polygon.contains(Point(point.x, point.y))


class Block(Fixed):
    """A roadblock, or a roadblock connector: lanes of one direction beside one another."""

    def __init__(self, number, edges):
        self.id = f"block{number}"
        self.interior_edges = edges
        self.connector = edges[0].lane.intersection
        self.polygon = edges[0].polygon
        for edge in edges:
            edge.block = self
            self.polygon = self.polygon.union(edge.polygon)

    incoming_edges = property(lambda self: _unique(before.block for edge in self.interior_edges for before in edge.incoming_edges))
    outgoing_edges = property(lambda self: _unique(after.block for edge in self.interior_edges for after in edge.outgoing_edges))

    def contains_point(self, point):
        return self.polygon.contains(Point(point.x, point.y))


class Crossing(Fixed):
    def __init__(self, number, vertices):
        self.id = f"crossing{number}"
        self.polygon = Polygon(vertices).buffer(0)


def _unique(things):
    return list(dict.fromkeys(things))


class City(Fixed):
    """The map of an episode as far as nuPlan's AbstractMap is asked for it."""

    map_name = "swerve"

    def __init__(self, lanes, crossings):
        driving = [lane for lane in lanes if lane.kind == "driving"]
        self.edges = {lane.index: Edge(self, lane) for lane in driving}
        self.blocks = []
        for lane in driving:
            if self.edges[lane.index].block is None:
                self.blocks.append(Block(len(self.blocks), [self.edges[i] for i in self._beside(lane)]))
        self.layers = {
            SemanticMapLayer.LANE: [e for e in self.edges.values() if not e.lane.intersection],
            SemanticMapLayer.LANE_CONNECTOR: [e for e in self.edges.values() if e.lane.intersection],
            SemanticMapLayer.ROADBLOCK: [b for b in self.blocks if not b.connector],
            SemanticMapLayer.ROADBLOCK_CONNECTOR: [b for b in self.blocks if b.connector],
            SemanticMapLayer.CROSSWALK: [Crossing(i, vertices) for i, vertices in enumerate(crossings)],
        }

    def _beside(self, lane):
        """Lanes of the same direction and kind beside this one, right to left."""
        by_index = {index: edge.lane for index, edge in self.edges.items()}
        found = [lane.index]
        for side, opposite in (("right", swerve_planner.RIGHT_OPPOSITE), ("left", swerve_planner.LEFT_OPPOSITE)):
            at = lane
            while True:
                beside = by_index.get(getattr(at, side))
                wrong = at.flags & opposite or beside is None or beside.index in found
                if wrong or beside.intersection != lane.intersection or self.edges[beside.index].block is not None:
                    break
                found.insert(0 if side == "right" else len(found), beside.index)
                at = beside
        return found

    def route(self, lanes):
        """Ids of the blocks of a route, and of what follows it: two at least, as nuPlan's are."""
        blocks = _unique(self.edges[index].block for index in lanes if index in self.edges)
        edge, beyond_m = self.edges[lanes[-1]], 0.0
        while edge.outgoing_edges and beyond_m < ROUTE_BEYOND_M and edge.outgoing_edges[0].block not in blocks:
            edge = edge.outgoing_edges[0]
            beyond_m += edge.baseline_path.length
            blocks.append(edge.block)
        ids = [block.id for block in blocks]
        return ids if len(ids) > 1 else ids * 2

    def _layer(self, layer):
        if layer not in self.layers:
            raise NotImplementedError(f"maps of Swerve have no layer {layer.name}")
        return self.layers[layer]

    def get_map_object(self, object_id, layer):
        return next((thing for thing in self._layer(layer) if thing.id == str(object_id)), None)

    def get_available_map_objects(self):
        return list(self.layers)

    def get_all_map_objects(self, point, layer):
        return [thing for thing in self._layer(layer) if thing.polygon.contains(Point(point.x, point.y))]

    def get_one_map_object(self, point, layer):
        return next(iter(self.get_all_map_objects(point, layer)), None)

    def is_in_layer(self, point, layer):
        return self.get_one_map_object(point, layer) is not None

    def get_proximal_map_objects(self, point, radius, layers):
        near = Point(point.x, point.y).buffer(radius)
        return {layer: [thing for thing in self._layer(layer) if thing.polygon.intersects(near)] for layer in layers}


def time_at(tick):
    return TimePoint(START_US + tick * 100_000)


def ego_state(observation, vehicle, tick):
    return EgoState.build_from_center(
        StateSE2(observation.x_m, observation.y_m, observation.heading_rad), StateVector2D(observation.speed_mps, 0.0),
        StateVector2D(observation.accel_mps2, observation.lat_accel_mps2), observation.steer_rad, time_at(tick), vehicle,
        angular_vel=observation.yaw_rate_rps)


def detections(observation, tick):
    tracked = []
    for one in observation.objects:
        kind = KINDS.get(one.kind, TrackedObjectType.VEHICLE)
        box = OrientedBox(StateSE2(one.x_m, one.y_m, one.heading_rad), one.length_m, one.width_m, one.height_m)
        token = str(one.id)
        about = SceneObjectMetadata(time_at(tick).time_us, token, one.id, token, one.kind)
        if kind == TrackedObjectType.GENERIC_OBJECT:
            tracked.append(StaticObject(kind, box, about))
        else:
            tracked.append(Agent(kind, box, StateVector2D(one.vx_mps, one.vy_mps), about, angular_velocity=one.yaw_rate_rps))
    return DetectionsTracks(TrackedObjects(tracked))


class Adapter(swerve_planner.Planner):
    wants = swerve_planner.OBJECTS | swerve_planner.MAP | swerve_planner.SIGNALS
    tracker = swerve_planner.LQR
    name = "nuplan"

    def reset(self, episode):
        self.city = City(episode.map.lanes, episode.map.crossings)
        self.controlled = [signal.lanes for signal in episode.map.signals]
        self.vehicle = VehicleParameters(
            width=episode.ego_width_m, front_length=(episode.ego_length_m + episode.ego_wheelbase_m) / 2,
            rear_length=(episode.ego_length_m - episode.ego_wheelbase_m) / 2,
            cog_position_from_rear_axle=episode.ego_wheelbase_m / 2, wheel_base=episode.ego_wheelbase_m,
            vehicle_name="swerve", vehicle_type="car", height=1.5)
        end = self.city.edges[episode.map.route[-1]].baseline_path.discrete_path[-1]
        goal = StateSE2(*episode.map.goal[:2], end.heading) if episode.map.goal else end
        self.shown = collections.deque(maxlen=HISTORY_TICKS + 1)  # (ego, objects) as nuPlan has them
        self.planner = planner_class(**arguments)
        self.planner.initialize(PlannerInitialization(self.city.route(episode.map.route), goal, self.city))

    def act(self, observation):
        if not self.shown:
            for tick in range(-HISTORY_TICKS, 0):
                self.shown.append((ego_state(observation, self.vehicle, tick), detections(observation, tick)))
        tick = observation.tick
        self.shown.append((ego_state(observation, self.vehicle, tick), detections(observation, tick)))
        history = SimulationHistoryBuffer(collections.deque(ego for ego, _ in self.shown),
                                          collections.deque(objects for _, objects in self.shown), 0.1)
        now = time_at(observation.tick)
        trajectory = self.planner.compute_trajectory(
            PlannerInput(SimulationIteration(now, observation.tick), history, self.lights(observation, now)))
        return points_of(trajectory, now)

    def lights(self, observation, now):
        """A state for each lane that goes on behind a signal's stop line, as nuPlan has them."""
        found = []
        for signal in observation.signals:
            if swerve_planner.LIGHTS.index(signal.light) >= swerve_planner.LIGHTS.index("stop_sign"):
                continue  # nuPlan's states are of lights
            for index in self.controlled[signal.signal]:
                after = self.city.edges[index].lane.successors if index in self.city.edges else []
                status = LIGHTS.get(signal.light, TrafficLightStatusType.UNKNOWN)
                found += [TrafficLightStatusData(status, lane, now.time_us) for lane in after]
        return found


def points_of(trajectory, now):
    """States that a tracker needs of a trajectory: its own states where they are few, else one every 0.1 s for 8 s."""
    states = [state for state in trajectory.get_sampled_trajectory() if state.time_us >= now.time_us]
    if len(states) > swerve_planner.TRAJECTORY_POINTS or len(states) < 2:
        last = min(trajectory.end_time.time_us, now.time_us + 7_900_000)
        states = trajectory.get_state_at_times([TimePoint(us) for us in range(now.time_us, last + 1, 100_000)])
    return [swerve_planner.Point((state.time_us - now.time_us) / 1e6, state.center.x, state.center.y, state.center.heading,
                                 state.dynamic_car_state.speed) for state in states]


if len(sys.argv) < 2 or any("=" not in word for word in sys.argv[2:]):
    sys.exit("usage: nuplan_planner.py CLASS KEY=VALUE..")
module, _, class_name = sys.argv[1].rpartition(".")
planner_class = getattr(importlib.import_module(module), class_name)
arguments = {key: ast.literal_eval(value) for key, _, value in (word.partition("=") for word in sys.argv[2:])}
swerve_planner.run(Adapter)
