"""Gymnasium environments over Swerve's scenarios: one drive at a time, or many that can be forked.

    import gymnasium, swerve.gym

    env = swerve.gym.SwerveVectorEnv("ncap", num_envs=64)
    observations, infos = env.reset(seed=1)
    observations, rewards, terminations, truncations, infos = env.step(env.action_space.sample())
    env.fork(0, 1)                      # environment 1 is now an exact copy of environment 0

The drive is that of `swerve run` in the same world (object, replay, student, teacher or tinyphysics): same physics, same sensors, same score,
bit for bit. docs/python.md defines observations, actions, reward and ends.
"""

import json
import os

import gymnasium
import numpy
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

import swerve_planner
from swerve import _native

OBSERVATIONS = ("ego", "route", "bev", "cameras", "controls")
_DRAWN = OBSERVATIONS[:4]  # in worlds of scenarios; logs of the controls challenge show "ego" and "controls"
_PLAN = 51  # rows of a log that "controls" shows: the one that the action is asked for, and 5 s behind it
_CONTROLS_COST_TICKS = (81, 481)  # whose lateral acceleration costs
ADVANCE_PER_M = 0.01
_EGO_FIRST = _native.EGO.index("speed_mps")  # what comes before is the place in the world
_LATERAL = _native.EGO.index("lat_accel_mps2")
_SEED_MAX = 2**31


def _box(low, high, dtype):
    return spaces.Box(numpy.array(low, dtype), numpy.array(high, dtype), dtype=dtype)


def observation_space(parts=_DRAWN):
    """A Dict of "ego" (speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad), "route" (32
    points ahead in ego's frame), "bev" (the lidar grid), "cameras" (left, front, right) and "controls" (of a log of
    the controls challenge: target_mps2, roll_lataccel_mps2, v_ego_mps, a_ego_mps2 of this tick and 50 behind it)."""
    every = {
        "ego": _box([0, -100, -100, -20, -2], [100, 100, 100, 20, 2], numpy.float32),
        "route": spaces.Box(-1e5, 1e5, _native.ROUTE_SHAPE, numpy.float32),
        "bev": spaces.Box(0, 255, _native.BEV_SHAPE, numpy.uint8),
        "cameras": spaces.Box(0, 255, _native.CAMERA_SHAPE, numpy.uint8),
        "controls": spaces.Box(-1000, 1000, (_PLAN, _native.CONTROLS - 1), numpy.float32),
    }
    unknown = set(parts) - set(OBSERVATIONS)
    if unknown or not parts:
        raise ValueError(f"observation: expected some of {OBSERVATIONS}, found {tuple(parts)}")
    return spaces.Dict({name: every[name] for name in OBSERVATIONS if name in parts})


def _choice(rig, sensors):
    """A rig, as a dict or a file, and ids of its sensors (None: every camera), as planners choose them."""
    if not isinstance(rig, dict):
        with open(os.fspath(rig), encoding="utf-8") as file:
            rig = json.load(file)
    if sensors is None:
        sensors = [camera["id"] for camera in rig.get("cameras", ())]
    return {"sensors": list(sensors), "rig": rig}


def _parts(observation, rig, world="object"):
    """Parts of an observation beside the sensors of a rig."""
    shown = ("ego", "controls") if world == "tinyphysics" else _DRAWN
    if observation is not None and not set(observation) <= set(shown):
        raise ValueError(f"observation: expected some of {shown} in the world {world}, found {tuple(observation)}")
    if observation is None and world == "tinyphysics":
        return shown
    if observation is None:
        return ("ego", "route", "bev") if rig is None else ("ego", "route")
    if rig is not None and not set(observation) <= {"ego", "route"}:
        raise ValueError(f"observation: expected ego and route, beside sensors of a rig, found {tuple(observation)}")
    return observation


def action_space(world="object"):
    """accel_mps2 along ego's heading, and steer_rad of the front wheels, left positive: what the
    vehicle can do. Environments take anything within 50 m/s2 and 2 rad and limit it as `run` does.
    In the world tinyphysics the second is its steering command, right positive, and the first nothing."""
    if world == "tinyphysics":
        return _box([0.0, -2.0], [0.0, 2.0], numpy.float32)
    return _box([-10.0, -0.6], [3.5, 0.6], numpy.float32)


class Step:
    """Parts of a reward, in arrays with an element per environment.

    advance_m   metres along the route in this step
    contact     True where ego touched something for the first time
    terminated, truncated
    score       0..1, the nuPlan score of a drive that ended in this step; NaN elsewhere
    cost        of the controls challenge, 0 elsewhere: over a drive its total_cost
    ego, tick   as in the observations; not to be written to
    """

    def __init__(self, batch, terminated, truncated, score, cost):
        self.advance_m = batch.advance_m
        self.contact = batch.contact.view(bool)
        self.terminated = terminated
        self.truncated = truncated
        self.score = score
        self.cost = cost
        self.ego = batch.ego
        self.tick = batch.tick


def default_reward(step):
    """0.01 for each metre of advance along the route, minus 1 at the first contact, plus the score at
    the horizon."""
    reward = ADVANCE_PER_M * step.advance_m
    reward[step.contact] -= 1.0
    if step.truncated.any():
        reward[step.truncated] += step.score[step.truncated]
    return reward


def controls_reward(step):
    """Minus the costs of the controls challenge: the default in the world tinyphysics."""
    return -step.cost


def _picture(bev):
    """A grid as an RGB image, ahead is up: road grey, markings white, obstacles red, unseen dark."""
    occupied, unseen, drivable, marking = bev[:, ::-1, ::-1].astype(numpy.float32) / 255.0
    shade = (40 + 80 * drivable + 110 * marking) * (1 - 0.5 * unseen)
    image = numpy.repeat(shade[..., None], 3, axis=2)
    image += occupied[..., None] * (numpy.array([230, 60, 40]) - image)
    return numpy.clip(image, 0, 255).astype(numpy.uint8)


_CHOICES = ("scenario", "scenario_seed")


def _known(options, names):
    """Options of a reset as a dict of one's own; a name that means nothing would be a choice that is not made."""
    options = dict(options or {})
    strange = [repr(name) for name in options if name not in names]
    if strange:
        raise ValueError(f"options: expected {', '.join(names)}, found {', '.join(strange)}")
    return options


class _Drives:
    """Base of the two environments: a batch, who draws which drive, and what is shown of it."""

    def __init__(self, suite, count, world, observation, reward, threads, trace_hash, rig, sensors, model):
        if rig is None and sensors is not None:
            raise ValueError("sensors: expected a rig that has them")
        self.space = observation_space(_parts(observation, rig, world))
        wants = _native.BEV * ("bev" in self.space.spaces)
        wants |= _native.CAMERAS * ("cameras" in self.space.spaces) | _native.HASH * trace_hash
        self.batch = _native.Batch(suite, count, world, threads, wants, rig and _choice(rig, sensors), model)
        seen = {name: spaces.Box(0, 255, rows.shape[1:], numpy.uint8) for name, rows in self.batch.sensors.items()}
        if not {"ego", "route"}.isdisjoint(seen):
            raise ValueError("rig: expected sensors that are not called ego or route, which observations have beside them")
        self.space = spaces.Dict({**self.space.spaces, **seen})
        self.names = numpy.array(self.batch.scenarios, dtype=object)
        self.index = {name: index for index, name in enumerate(self.batch.scenarios)}
        self.reward = reward or (controls_reward if world == "tinyphysics" else default_reward)
        self.plans = [None if rows is None else self._plan(rows) for rows in self.batch.controls]
        self.score = numpy.full(count, numpy.nan)

    @staticmethod
    def _plan(rows):
        """Rows of a log as they are shown, with the last one repeated behind it."""
        return numpy.concatenate([rows, numpy.repeat(rows[-1:], _PLAN, axis=0)])[:, :-1].astype(numpy.float32)

    def _plans_now(self):
        return numpy.stack([self.plans[scenario][tick : tick + _PLAN]
                            for scenario, tick in zip(self.batch.scenario, self.batch.tick)])

    def _cost(self, before_mps2):
        """Costs of this step, of drives of logs: `before_mps2` were their lateral accelerations before it."""
        batch, costs = self.batch, numpy.zeros(self.batch.count)
        now_mps2 = batch.ego[:, _LATERAL]
        for index in range(batch.count):
            rows, tick = batch.controls[batch.scenario[index]], int(batch.tick[index])
            if rows is None:
                continue
            first, end = _CONTROLS_COST_TICKS
            count = min(end, len(rows) + 1) - first  # tick n shows what became of row n - 1
            if not first <= tick < first + count or count < 2:
                continue
            costs[index] = 5000 * (rows[tick - 1, 0] - now_mps2[index]) ** 2 / count
            if tick > first:
                costs[index] += 100 * ((now_mps2[index] - before_mps2[index]) / 0.1) ** 2 / (count - 1)
        return costs

    def _scenario(self, wanted):
        index = self.index.get(wanted, wanted) if isinstance(wanted, str) else _native.whole("scenario", wanted)
        if isinstance(index, str) or index >= len(self.names):
            raise ValueError(f"scenario: no {wanted!r} among {len(self.names)} of the suite")
        return index

    def begin(self, which, random, options):
        """Environments which[i] begin a drive that random[i] draws, unless options say which."""
        scenarios, seeds = [], []
        for at, rng in enumerate(random):
            drawn = int(rng.integers(len(self.names))), int(rng.integers(1, _SEED_MAX))
            chosen = []
            for name, value in zip(_CHOICES, drawn):
                wanted = options.get(name)
                if isinstance(wanted, (list, tuple, numpy.ndarray)):
                    wanted = wanted[at]
                chosen.append(value if wanted is None else wanted)
            scenarios.append(self._scenario(chosen[0]))
            seeds.append(chosen[1])
        self.batch.reset(which, scenarios, seeds)

    def seen(self, copy=True):
        batch = self.batch
        rows = {
            "ego": lambda: batch.ego[:, _EGO_FIRST:].astype(numpy.float32),
            "route": lambda: batch.route.copy() if copy else batch.route,
            "bev": lambda: batch.bev.copy() if copy else batch.bev,
            "cameras": lambda: batch.cameras.copy() if copy else batch.cameras,
            "controls": self._plans_now,
        }
        seen = {name: rows[name]() for name in self.space.spaces if name not in batch.sensors}
        for name, array in batch.sensors.items():
            seen[name] = array.copy() if copy else array
        return seen

    def advance(self, idle=None):
        """A step: (rewards, terminations, truncations, [outcome or None]) of the drives."""
        batch = self.batch
        went_on = batch.end == _native.GOES_ON
        if idle is not None:
            went_on &= idle == 0
        before_mps2 = batch.ego[:, _LATERAL].copy()
        batch.step(idle)
        ended = batch.end != _native.GOES_ON
        truncated = batch.end == _native.HORIZON
        outcomes = {}
        self.score.fill(numpy.nan)
        for index in numpy.flatnonzero(ended):
            outcomes[index] = batch.outcome(int(index))
            self.score[index] = outcomes[index]["metrics"]["score"]
        terminated = ended & ~truncated
        rewards = self.reward(Step(batch, terminated, truncated, self.score, self._cost(before_mps2)))
        return numpy.where(went_on, rewards, 0.0), terminated, truncated, outcomes

    def about(self, index):
        """The info of one environment."""
        batch = self.batch
        return {
            "scenario": self.names[batch.scenario[index]],
            "scenario_seed": int(batch.seed[index]),
            "tick": int(batch.tick[index]),
            "pose": batch.ego[index, :_EGO_FIRST].copy(),
        }


class SwerveVectorEnv(VectorEnv):
    """Many drives, stepped together in C, in one process.

    suite           file, name of the library, as swerve.run() takes them
    world           "object" (agents react) or "replay" (they follow their logs); "student" or "teacher", whose model
                    makes what is seen, on the CPU; "tinyphysics", for logs of the controls challenge
    model           of such a world, a dict of any of: models (folder), layout, precision, skip_steps
    observation     which of "ego", "route", "bev", "cameras"; None: all but cameras, with a rig ego and route. In
                    tinyphysics "ego" and "controls"
    rig             file of a rig, or its dict: its sensors are in the observation by id, newest frames
    sensors         which of them, cameras and "bev"; None: every camera. What is not named is not drawn
    reward          a function of a Step; None: default_reward
    autoreset_mode  NEXT_STEP, SAME_STEP or DISABLED (then options["reset_mask"] says who resets)
    threads         that score and draw; more than one pays where pictures are asked for
    trace_hash      outcomes have the hash that `swerve run` would record
    copy            False hands out the environments' own memory, which the next call overwrites

    Each reset draws a scenario and a seed; options {"scenario": id or index, "scenario_seed": n}, or
    lists of them, choose instead. The outcome of a drive that ends is in infos["outcome"].
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        suite,
        num_envs=1,
        *,
        world="object",
        observation=None,
        reward=None,
        autoreset_mode=AutoresetMode.NEXT_STEP,
        threads=1,
        trace_hash=False,
        copy=True,
        render_mode=None,
        rig=None,
        sensors=None,
        model=None,
    ):
        if render_mode is not None:
            raise ValueError("SwerveVectorEnv draws nothing; SwerveEnv has render_mode rgb_array")
        self.drives = _Drives(suite, num_envs, world, observation, reward, threads, trace_hash, rig, sensors, model)
        self.batch = self.drives.batch
        self.num_envs = num_envs
        self.copy = copy
        self.render_mode = None
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = self.drives.space
        self.single_action_space = action_space(world)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.scenarios = self.batch.scenarios
        self._random = [None] * num_envs
        self._idle = numpy.zeros(num_envs, numpy.uint8)

    def reset(self, *, seed=None, options=None):
        options = _known(options, (*_CHOICES, "reset_mask"))
        if seed is None or isinstance(seed, (int, numpy.integer)):
            seed = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"seed: expected {self.num_envs}, found {len(seed)}")
        mask = options.pop("reset_mask", None)
        if mask is None:
            mask = numpy.ones(self.num_envs, bool)
        elif getattr(mask, "dtype", None) != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError("reset_mask: expected an array of bool with a True in it, one per environment")
        which = [int(index) for index in numpy.flatnonzero(mask)]
        for index in which:
            if self._random[index] is None or seed[index] is not None:
                self._random[index] = seeding.np_random(seed[index])[0]
        for name in _CHOICES:
            given = options.get(name)
            if isinstance(given, (list, tuple, numpy.ndarray)):
                if len(given) != self.num_envs:
                    raise ValueError(f"{name}: expected one per environment, found {len(given)}")
                options[name] = [given[index] for index in which]
        self.drives.begin(which, [self._random[index] for index in which], options)
        self._idle[mask] = 0
        return self.observe(), self._infos(mask)

    def step(self, actions):
        if self.autoreset_mode == AutoresetMode.DISABLED and self._idle.any():
            raise gymnasium.error.ResetNeeded("an environment has ended: reset it, with reset_mask")
        begun = None
        if self._idle.any():
            begun = self._idle.copy()
            self._reset_some(numpy.flatnonzero(begun))
        self.batch.actions[:] = actions
        rewards, terminated, truncated, outcomes = self.drives.advance(begun)
        infos = self._infos(numpy.ones(self.num_envs, bool), outcomes)
        self._idle[:] = terminated | truncated
        if self.autoreset_mode == AutoresetMode.SAME_STEP and outcomes:
            infos = self._reset_now(outcomes, infos)
        return self.observe(), rewards, terminated, truncated, infos

    def _reset_some(self, which):
        which = [int(index) for index in which]
        self.drives.begin(which, [self._random[index] for index in which], {})
        self._idle[which] = 0

    def _reset_now(self, outcomes, infos):
        """SAME_STEP: what drives that ended showed last goes into infos; masks say of which."""
        ended = infos["_outcome"]
        final = {name: value for name, value in infos.items() if not name.startswith("_")}
        final.update({"_" + name: ended for name in tuple(final)})
        last = self.drives.seen(copy=True)
        self._reset_some(outcomes)
        infos = self._infos(numpy.ones(self.num_envs, bool))
        infos.update(final_obs=last, _final_obs=ended, final_info=final, _final_info=ended)
        return infos

    def _infos(self, mask, outcomes=None):
        batch = self.batch
        infos = {
            "scenario": self.drives.names[batch.scenario],
            "scenario_seed": batch.seed.copy(),
            "tick": batch.tick.copy(),
            "pose": batch.ego[:, :_EGO_FIRST].copy(),
        }
        mask = mask.copy()
        infos.update({"_" + name: mask for name in tuple(infos)})
        if outcomes:
            infos["outcome"] = numpy.full(self.num_envs, None, dtype=object)
            infos["_outcome"] = numpy.zeros(self.num_envs, bool)
            for index, outcome in outcomes.items():
                infos["outcome"][index] = outcome
                infos["_outcome"][index] = True
        return infos

    def observe(self):
        """Observation of all environments now."""
        return self.drives.seen(self.copy)

    def fork(self, source, target):
        """Environment `target` (a number, or several) becomes an exact copy of `source`, which must be
        under way. Each goes on by itself; observe() shows both."""
        for index in numpy.atleast_1d(target):
            self.batch.fork(source, index)
            self._idle[index] = self._idle[source]

    def save(self, index):
        """The state of one environment, to be restored any number of times into any of these."""
        return self.batch.save(index)

    def restore(self, state, index):
        """Environment `index` goes on from a saved state."""
        self.batch.restore(state, index)
        self._idle[index] = 0

    def close_extras(self, **kwargs):
        """Nothing to do: memory goes with the last array that shows it."""


class SwerveEnv(gymnasium.Env):
    """One drive at a time; arguments as of SwerveVectorEnv."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(
        self,
        suite,
        *,
        world="object",
        observation=None,
        reward=None,
        trace_hash=False,
        render_mode=None,
        rig=None,
        sensors=None,
        model=None,
    ):
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode: expected rgb_array or None, found {render_mode!r}")
        self.arguments = {
            "suite": suite,
            "world": world,
            "observation": observation,
            "reward": reward,
            "trace_hash": trace_hash,
            "render_mode": render_mode,
            "rig": rig,
            "sensors": sensors,
            "model": model,
        }
        self.drives = _Drives(suite, 1, world, observation, reward, 1, trace_hash, rig, sensors, model)
        self.batch = self.drives.batch
        if render_mode is not None and "bev" not in self.drives.space.spaces:
            raise ValueError('render_mode rgb_array draws the "bev" of the observation')
        self.observation_space = self.drives.space
        self.action_space = action_space(world)
        self.scenarios = self.batch.scenarios
        self.render_mode = render_mode
        self._actions = []

    def _seen(self):
        return {name: rows[0] for name, rows in self.drives.seen().items()}

    def reset(self, *, seed=None, options=None):
        options = _known(options, _CHOICES)
        super().reset(seed=seed)
        self.drives.begin([0], [self.np_random], options)
        self._actions = []
        return self._seen(), self.drives.about(0)

    def step(self, action):
        self.batch.actions[0] = action
        self._actions.append(self.batch.actions[0].copy())
        rewards, terminated, truncated, outcomes = self.drives.advance()
        info = self.drives.about(0)
        if outcomes:
            info["outcome"] = outcomes[0]
        return self._seen(), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self):
        if self.render_mode != "rgb_array":
            return None
        return _picture(self.batch.sensors["bev"][0] if self.batch.sensors else self.batch.bev[0])

    def save(self):
        """The state of the drive, for restore()."""
        return self.batch.save(0), tuple(self._actions)

    def restore(self, state):
        """Goes on from a saved state of this environment."""
        self.batch.restore(state[0], 0)
        self._actions = list(state[1])

    def clone(self):
        """Another environment in the same state: the same drive, driven again to this tick."""
        other = SwerveEnv(**self.arguments)
        if self.batch.end[0] != _native.EMPTY:
            other.batch.reset([0], [int(self.batch.scenario[0])], [int(self.batch.seed[0])])
            for action in self._actions:
                other.batch.actions[0] = action
                other.batch.step()
            other._actions = list(self._actions)
        return other


def as_planner(policy, observation=None, *, rig=None, sensors=None, world="object"):
    """A planner class for swerve.run() from a policy: a function of an observation as SwerveEnv shows it
    with the same arguments that returns an action. Training and judging so see the same."""
    choice = rig and _choice(rig, sensors)
    names = observation_space(_parts(observation, rig, world)).spaces

    class Policy(swerve_planner.Planner):
        name = getattr(policy, "__name__", type(policy).__name__)
        wants = swerve_planner.BEV * ("bev" in names) | swerve_planner.CAMERAS * ("cameras" in names)
        wants |= swerve_planner.CONTROLS * ("controls" in names)

        def reset(self, episode):
            self.plan = _Drives._plan(numpy.array([(*row, 0.0) for row in episode.controls])) if episode.controls else None

        def act(self, seen):
            rows = {
                "ego": lambda: numpy.array(
                    [getattr(seen, name) for name in _native.EGO[_EGO_FIRST:]], numpy.float32
                ),
                "route": lambda: numpy.array(
                    [tuple(vars(point).values()) for point in seen.route], numpy.float32
                ),
                "bev": lambda: numpy.array(seen.bev),
                "cameras": lambda: numpy.stack(seen.camera),
                "controls": lambda: self.plan[seen.tick : seen.tick + _PLAN],
            }
            shown = {name: rows[name]() for name in names}
            if choice:
                shown.update((name, numpy.array(seen.sensors[name].frame)) for name in choice["sensors"])
            return tuple(policy(shown))

    if choice:
        Policy.rig, Policy.sensors = choice["rig"], choice["sensors"]
    return Policy


gymnasium.register(
    "swerve/Drive-v0", entry_point=SwerveEnv, vector_entry_point=SwerveVectorEnv, disable_env_checker=True
)
