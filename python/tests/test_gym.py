"""Environments against Gymnasium's rules and against `swerve run`.

Method: Gymnasium's checker on the single environment; the vector environment must do, in each mode of
autoreset, what Gymnasium's own SyncVectorEnv makes of single ones; a drive must have the trace hash of the
same actions under `swerve run`; forks and restored states must go on as their source.
"""

import gc
import os
import pathlib
import tempfile
import unittest
import warnings
import weakref

import gymnasium
import numpy
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import swerve
import swerve.gym
from swerve._native import suite_path
from swerve.gym import SwerveEnv, SwerveVectorEnv


def same(a, b):
    """Whether two nested structures hold the same bits."""
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, numpy.ndarray) and a.dtype == object:
        return a.shape == b.shape and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, (numpy.ndarray, numpy.generic)):
        return numpy.array_equal(a, b, equal_nan=numpy.asarray(a).dtype.kind == "f")
    return a == b


def row(observations, index):
    return {name: rows[index] for name, rows in observations.items()}


def pick(value, index):
    """One environment's part of a vector info, in which dicts are dicts of arrays."""
    if isinstance(value, dict):
        return {name: pick(part, index) for name, part in value.items() if not name.startswith("_")}
    return value[index]


def law(observation):
    """A policy that depends on all it sees."""
    target = observation["route"][4]
    occupied = (observation["bev"][0, 36:90, 46:50] > 64).any()
    speed = float(observation["ego"][0])
    return -5.0 if occupied else min(1.0, 11.0 - speed), 0.1 * float(target[1]) / max(float(target[0]), 4.0)


class Rules(unittest.TestCase):
    def test_gymnasiums_checker(self):
        for observation in (("ego", "route"), ("ego", "route", "bev", "cameras")):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                # It would have the actions of a symmetric and normalised space; ours have units.
                warnings.filterwarnings("ignore", ".*symmetric and normalized.*")
                check_env(SwerveEnv("smoke", observation=observation), skip_render_check=True)

    def test_registered(self):
        env = gymnasium.make("swerve/Drive-v0", suite="smoke", render_mode="rgb_array")
        env.reset(seed=1)
        picture = env.render()
        self.assertEqual((picture.shape, picture.dtype), ((192, 96, 3), numpy.uint8))
        self.assertGreater(len(numpy.unique(picture)), 3)
        many = gymnasium.make_vec("swerve/Drive-v0", num_envs=3, suite="smoke")
        self.assertIsInstance(many.unwrapped, SwerveVectorEnv)
        env.close()
        many.close()

    def test_modes_are_those_of_gymnasium(self):
        count, parts = 3, ("ego", "route", "bev")
        for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
            ours = SwerveVectorEnv("smoke", count, observation=parts, autoreset_mode=mode)
            theirs = SyncVectorEnv([lambda: SwerveEnv("smoke", observation=parts)] * count, autoreset_mode=mode)
            self.assertEqual(ours.metadata["autoreset_mode"], mode)
            self.assertEqual(ours.observation_space, theirs.observation_space)
            self.assertEqual(ours.action_space, theirs.action_space)
            self.assertTrue(same(ours.reset(seed=4), theirs.reset(seed=4)))
            random = numpy.random.default_rng(1)
            ended = 0
            for tick in range(210):
                actions = random.uniform([-4.0, -0.03], [2.0, 0.03], (count, 2)).astype(numpy.float32)
                mine, other = ours.step(actions), theirs.step(actions)
                for part in range(4):
                    self.assertTrue(same(mine[part], other[part]), (mode, tick, part))
                names = [name for name in other[4] if not name.startswith("_")]
                self.assertEqual(set(names), {name for name in mine[4] if not name.startswith("_")})
                for name in names:
                    mask = other[4]["_" + name]
                    self.assertTrue(same(mine[4]["_" + name], mask), (mode, tick, name))
                    for at in numpy.flatnonzero(mask):
                        self.assertTrue(same(pick(mine[4][name], at), pick(other[4][name], at)), (mode, tick, name))
                done = mine[2] | mine[3]
                ended += done.sum()
                self.assertTrue(ours.observation_space.contains(mine[0]))
                if mode == AutoresetMode.DISABLED and done.any():
                    with self.assertRaises(gymnasium.error.ResetNeeded):
                        ours.step(actions)
                    options = {"reset_mask": done}
                    self.assertTrue(same(ours.reset(options=dict(options))[0], theirs.reset(options=dict(options))[0]))
            self.assertGreaterEqual(ended, 3)

    def test_gymnasium_batches_any_outcomes(self):
        """Metrics of one drive are numbers where those of another are infinite, or none."""
        env = SyncVectorEnv([lambda: SwerveEnv("smoke", observation=["ego"])] * 8)
        env.reset(seed=1)
        verdicts = set()
        for _ in range(220):
            infos = env.step(numpy.zeros((8, 2), numpy.float32))[4]
            verdicts |= {o["verdict"] for o in infos.get("outcome", ()) if o is not None}
        self.assertEqual(verdicts, {"pass", "fail"})

    def test_seeds(self):
        env = SwerveVectorEnv("smoke", 4, observation=["ego", "bev"])
        first = env.reset(seed=7)
        self.assertTrue(same(first, env.reset(seed=7)))
        self.assertTrue(same(first, SwerveVectorEnv("smoke", 4, observation=["ego", "bev"]).reset(seed=[7, 8, 9, 10])))
        self.assertFalse(same(first, env.reset(seed=8)))
        self.assertFalse(same(env.reset(), env.reset()))

    def test_copies(self):
        kept = SwerveVectorEnv("smoke", 2)
        shown = SwerveVectorEnv("smoke", 2, copy=False)
        for env, changes in ((kept, False), (shown, True)):
            before = env.reset(seed=3)[0]["bev"]
            as_it_was = before.copy()
            for _ in range(5):
                env.step(numpy.zeros((2, 2)))
            self.assertEqual(not numpy.array_equal(before, as_it_was), changes)
        rows = shown.observe()["bev"]
        del env, shown
        gc.collect()
        self.assertGreaterEqual(int(rows.sum()), 0)  # the memory lives as long as its arrays

    def test_suites_are_found_as_the_program_finds_them(self):
        before = os.getcwd()
        library = suite_path("smoke")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                os.mkdir("smoke")
                self.assertEqual(suite_path("smoke"), library)  # it holds no scenario
                pathlib.Path("smoke/one.json").touch()
                self.assertEqual(suite_path("smoke"), "smoke")
                self.assertEqual(suite_path("/smoke"), "/smoke")
            finally:
                os.chdir(before)

    def test_faults(self):
        with self.assertRaises(swerve.InputError):
            SwerveEnv("no such suite")
        with self.assertRaises(swerve.UsageError):
            SwerveEnv("smoke", world="golden")
        for arguments in ({"model": {"skip_steps": 1}}, {"world": "student", "model": {"steps": 1}},
                          {"world": "student", "rig": {"id": "none", "bev": True, "cameras": []}},
                          {"world": "tinyphysics", "observation": ["bev"]}, {"observation": ["controls"]}):
            with self.assertRaises(ValueError, msg=arguments):
                SwerveEnv("smoke", **arguments)
        for model in ({"skip_steps": 3}, {"precision": "fp8"}, {"layout": "cities"}, {"models": "no such folder"}):
            with self.assertRaises(swerve.Error, msg=model):
                SwerveEnv("smoke", world="student", model=model)
        with self.assertRaises(ValueError):
            SwerveEnv("smoke", observation=["lidar"])
        env = SwerveVectorEnv("smoke", 2)
        with self.assertRaises(swerve.InputError):
            env.fork(0, 1)
        env.reset(seed=1)
        with self.assertRaises(swerve.InputError):
            env.step(numpy.array([[numpy.nan, 0.0], [0.0, 0.0]]))
        with self.assertRaises(ValueError):
            env.reset(options={"scenario": "no such scenario"})
        with self.assertRaisesRegex(ValueError, "expected scenario, scenario_seed, reset_mask, found 'scenarios', 1"):
            env.reset(options={"scenarios": "ccrs", 1: 2, "scenario_seed": 3})
        single = SwerveEnv("smoke")
        for options in ({"seed": 3}, {"reset_mask": numpy.ones(1, bool)}):
            with self.assertRaisesRegex(ValueError, "options: expected scenario, scenario_seed, found"):
                single.reset(options=options)
        with self.assertRaises(ValueError):
            SwerveVectorEnv("smoke", 2).restore(env.save(0), 0)
        for wrong in (2**64 + 5, -1, 1.5, "1"):
            with self.assertRaisesRegex(ValueError, "seed: expected a whole number from 0 to 18446744073709551615, found"):
                env.reset(options={"scenario_seed": wrong})
        for call in (lambda: env.reset(options={"scenario": 0.5}), lambda: env.fork(0, 2**32 + 1), lambda: env.save(0.5),
                     lambda: env.restore(env.save(0), -1), lambda: SwerveVectorEnv("smoke", 2, threads=2**32 + 1)):
            with self.assertRaisesRegex(ValueError, "expected a whole number from 0 to 4294967295, found"):
                call()

    def test_environments_are_let_go(self):
        """Their memory and threads go with the last reference; a fork of the process, which has no such threads, goes on."""
        env = SwerveVectorEnv("smoke", 2, threads=3)
        env.reset(seed=1)
        child = os.fork()
        if child == 0:
            env.step(numpy.zeros((2, 2)))
            del env
            gc.collect()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        state, memory = env.save(0), weakref.ref(env.batch.memory)
        del env
        gc.collect()
        self.assertIsNotNone(memory())  # of the state
        del state
        self.assertIsNone(memory())


class Drives(unittest.TestCase):
    def test_a_drive_is_that_of_run(self):
        parts = ("ego", "route", "bev")
        result = swerve.run("smoke", swerve.gym.as_planner(law, parts), world="object", seeds=1)
        mains = {o["scenario_id"]: o for o in result if o["branch_id"] == ""}
        env = SwerveEnv("smoke", observation=parts, trace_hash=True)
        self.assertEqual(set(mains), set(env.scenarios))
        for name, expected in mains.items():
            observation, _ = env.reset(options={"scenario": name, "scenario_seed": 1})
            ended = False
            while not ended:
                observation, _, terminated, truncated, info = env.step(law(observation))
                ended = terminated or truncated
            outcome = info["outcome"]
            for member in ("trace_hash", "verdict", "ticks", "revision", "seed", "scenario_id"):
                self.assertEqual(outcome[member], expected[member], (name, member))
            self.assertEqual(outcome["metrics"]["score"], expected["score"])
            self.assertEqual(";".join(outcome["reasons"]), expected["reasons"])

    def test_a_learned_drive_is_that_of_run(self):
        """In a vector, beside another drive, and as a copy from tick 20 on: whatever a model makes has the bits of `run`."""
        parts = ("ego", "route", "bev", "cameras")
        for skip in (0, 2):
            result = swerve.run("smoke", swerve.gym.as_planner(law, parts), world="student", seeds=1, workers=1,
                                options=["--scenario", "cut_in", "--audit", "off", "--skip-steps", str(skip)])
            expected = next(o for o in result if o["branch_id"] == "")
            env = SwerveVectorEnv("smoke", 3, world="student", observation=parts, trace_hash=True, threads=2,
                                  model={"skip_steps": skip}, autoreset_mode=AutoresetMode.DISABLED)
            seen, _ = env.reset(options={"scenario": ["cut_in", "ccrs", "ccrs"], "scenario_seed": [1, 1, 2]})
            self.assertFalse(same(row(seen, 0), row(seen, 1)))
            for tick in range(expected["ticks"]):
                if tick == 20:
                    env.fork(0, [1, 2])
                    env.restore(env.save(1), 2)
                    seen = env.observe()
                    self.assertTrue(same(row(seen, 0), row(seen, 2)))
                seen, _, terminated, truncated, infos = env.step(numpy.array([law(row(seen, i)) for i in range(3)]))
            self.assertTrue((terminated | truncated).all())
            for index in range(3):
                for member in ("trace_hash", "verdict", "ticks", "sampler", "model_hash"):
                    self.assertEqual(infos["outcome"][index][member], expected[member], (skip, index, member))

    def test_a_drive_by_a_rig_is_that_of_run(self):
        """The same sensors of a rig show the same pixels, and a drive has the hash that `run` records."""
        camera = {"width": 48, "height": 32, "rate_hz": 30, "lens": {"fx": 40}}
        rig = {"id": "small", "bev": True, "cameras": [
            {**camera, "id": "front", "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5, "pitch_rad": 0.1}},
            {**camera, "id": "left", "shutter": "rolling_top", "shutter_ms": 20,
             "pose": {"x_m": 0, "y_m": 0.9, "z_m": 1.2, "yaw_rad": 1.2}}]}
        chosen = ["left", "bev"]

        def policy(observation):
            return (-4.0 if observation["left"][16, 24:].mean() > 120 else 0.5), 0.001 * float(observation["bev"][0].mean())

        result = swerve.run("smoke", swerve.gym.as_planner(policy, rig=rig, sensors=chosen), world="object", seeds=1)
        mains = {o["scenario_id"]: o for o in result if o["branch_id"] == ""}
        env = SwerveEnv("smoke", trace_hash=True, rig=rig, sensors=chosen)
        self.assertEqual({name: space.shape for name, space in env.observation_space.items()},
                         {"ego": (5,), "route": (32, 7), "left": (32, 48, 3), "bev": (4, 192, 96)})
        for name, expected in mains.items():
            observation, _ = env.reset(options={"scenario": name, "scenario_seed": 1})
            ended = False
            while not ended:
                observation, _, terminated, truncated, info = env.step(policy(observation))
                ended = terminated or truncated
            for member in ("trace_hash", "rig", "verdict", "ticks"):
                self.assertEqual(info["outcome"][member], expected[member], f"{name}: {member}")
            self.assertEqual(len(expected["rig"]), 64)

    def test_forks_by_a_rig_and_what_is_refused(self):
        camera = {"id": "front", "width": 48, "height": 32, "lens": {"fx": 40}, "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5}}
        rig = {"id": "small", "cameras": [camera], "lidars": [
            {"id": "roof", "pose": {"x_m": 0, "y_m": 0, "z_m": 2}, "azimuths": 16, "range_m": 50, "elevations_rad": [0]}]}
        env = SwerveVectorEnv("smoke", 3, rig=rig, threads=2, trace_hash=True)
        seen, _ = env.reset(options={"scenario": "ccrs", "scenario_seed": 2})
        self.assertEqual(seen["front"].shape, (3, 32, 48, 3))
        for _ in range(5):
            env.step(numpy.array([[0.5, 0.0], [0.0, 0.1], [-3.0, 0.0]]))
        env.fork(0, 1)
        env.restore(env.save(0), 2)
        seen = env.observe()
        self.assertTrue(same(row(seen, 0), row(seen, 1)) and same(row(seen, 0), row(seen, 2)))
        seen, *_ = env.step(numpy.array([[1.0, 0.0], [1.0, 0.0], [-3.0, 0.0]]))
        self.assertTrue(same(row(seen, 0), row(seen, 1)))
        self.assertFalse(same(seen["front"][0], seen["front"][2]))
        for words, arguments in (("lidar roof", {"sensors": ["roof"]}), ("rear", {"sensors": ["rear"]}),
                                 ("beside sensors of a rig", {"observation": ["ego", "cameras"]})):
            with self.assertRaisesRegex(Exception, words):
                SwerveVectorEnv("smoke", 1, rig=rig, **arguments)

    def test_reward_is_as_stated(self):
        env = SwerveVectorEnv("smoke", 3, observation=["ego"])
        env.reset(options={"scenario": ["free_driving", "ccrs", "ccrs"], "scenario_seed": 1})
        total = numpy.zeros(3)
        outcomes = [None] * 3
        while None in outcomes:
            _, rewards, terminated, _, infos = env.step(numpy.array([[0, 0], [0, 0], [-6.0, 0]]))
            for at in range(3):
                total[at] += rewards[at] if outcomes[at] is None else 0.0
                if "outcome" in infos and infos["_outcome"][at] and outcomes[at] is None:
                    outcomes[at] = infos["outcome"][at], bool(terminated[at])
        self.assertEqual([terminated for _, terminated in outcomes], [False, True, False])
        for value, (outcome, collided) in zip(total, outcomes):
            metrics = outcome["metrics"]
            expected = 0.01 * metrics["progress_m"] - (metrics["collision_count"] > 0)
            expected += 0.0 if collided else metrics["score"]
            self.assertAlmostEqual(value, expected, 6)

    def test_a_reward_of_ones_own(self):
        env = SwerveVectorEnv("smoke", 2, observation=["ego"], reward=lambda step: -step.ego[:, 3])
        env.reset(seed=1)
        _, rewards, _, _, _ = env.step(numpy.zeros((2, 2)))
        self.assertTrue(numpy.array_equal(rewards, -env.batch.ego[:, 3]))

    def test_forks(self):
        env = SwerveVectorEnv("smoke", 5, trace_hash=True, autoreset_mode="Disabled")
        env.reset(options={"scenario": "ccrs", "scenario_seed": 2})
        random = numpy.random.default_rng(3)
        for _ in range(15):
            env.step(random.uniform([-1, -0.02], [1, 0.02], (5, 2)))
        env.fork(0, [1, 2])
        state = env.save(0)
        env.restore(state, 3)
        seen = env.observe()
        for at in (1, 2, 3):
            self.assertTrue(same(row(seen, 0), row(seen, at)))
        self.assertFalse(same(row(seen, 0), row(seen, 4)))
        infos, done = {}, numpy.zeros(5, bool)
        while not done.any():
            actions = numpy.tile(random.uniform([-3, -0.02], [-1, 0.02]), (5, 1))
            actions[2, 0] = -8.0
            seen, rewards, terminated, truncated, infos = env.step(actions)
            self.assertEqual(rewards[0], rewards[1])
            self.assertTrue(same(row(seen, 0), row(seen, 3)))
            done = terminated | truncated
        hashes = [outcome and outcome["trace_hash"] for outcome in infos["outcome"]]
        self.assertEqual(len({hashes[0], hashes[1], hashes[3]}), 1)
        self.assertNotEqual(hashes[0], hashes[2])

    def test_clone_and_restore_of_one(self):
        env = SwerveEnv("smoke", trace_hash=True)
        env.reset(seed=5)
        random = numpy.random.default_rng(6)
        for _ in range(10):
            env.step(random.uniform([-1, -0.02], [1, 0.02]))
        state = env.save()
        other = env.clone()
        paths = []
        for drive in (env, other, env):
            if paths and drive is env:
                env.restore(state)
            again, path, ended = numpy.random.default_rng(8), [], False
            while not ended:
                seen, reward, terminated, truncated, info = drive.step(again.uniform([-3, -0.02], [1, 0.02]))
                path.append((seen, reward))
                ended = terminated or truncated
            paths.append((path, info["outcome"]["trace_hash"]))
        for path, trace_hash in paths[1:]:
            self.assertEqual(trace_hash, paths[0][1])
            for (seen, reward), (expected, other_reward) in zip(path, paths[0][0]):
                self.assertTrue(same(seen, expected) and reward == other_reward)

    def test_a_clone_of_a_state_from_an_earlier_drive(self):
        env = SwerveEnv("smoke")
        env.reset(options={"scenario": 0, "scenario_seed": 3})
        for _ in range(5):
            seen = env.step([1.0, 0.02])[0]
        state = env.save()
        env.reset(options={"scenario": 1, "scenario_seed": 4})
        for _ in range(7):
            env.step([-1.0, 0.0])
        env.restore(state)
        other = env.clone()
        self.assertTrue(same(env._seen(), seen) and same(other._seen(), seen))


if __name__ == "__main__":
    unittest.main()
