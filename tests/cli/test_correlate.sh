#!/bin/bash
# Goal: errors by horizon are those of the models and of nothing else.
# Method: recordings in closed form. A car that gains 1 m/s every second leaves who goes straight on
# by t^2 / 2, and one on a circle by the chord; a model that is given its inputs stays with both. The
# likelihood of an even speed under itself is a quotient of counts.
#
# Usage: test_correlate.sh SWERVE
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
work=$(mktemp -d /tmp/swerve-correlate-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SWERVE_STORE
. "$here/tap.sh"

python3 - <<'PY'
import json, math
def write(name, points, **more):
    json.dump({"id": name, "horizon_s": 6,
        "map": {"lanes": [{"id": "east", "centre_line": [[-100, 0], [900, 0]], "width_m": 3.5}]},
        "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 1, "route": ["east"]},
        "agents": [dict({"id": "car", "kind": "car", "length_m": 4.8, "behaviour": "replay",
                         "pose": {"x_m": points[0][1], "y_m": points[0][2], "heading_rad": points[0][3]},
                         "speed_mps": points[0][4], "trajectory": points}, **more)]}, open(name + ".json", "w"))
ticks = [k / 10 for k in range(61)]
write("gains", [[t, 10 * t + t * t / 2, 0, 0, 10 + t] for t in ticks])
r, w = 40, 0.2
write("circle", [[t, r * math.sin(w * t), 60 - r * math.cos(w * t), w * t, r * w] for t in ticks])
for i in range(3):
    write(f"gains{i}", [[t, 10 * t + (2 + i) * t * t / 10, 0, 0, 10 + (2 + i) * t / 5] for t in ticks])
write("even", [[t, 11 * t, 0, 0, 11] for t in ticks])
write("stands", [[t, 50, 0, 0, 0] for t in ticks])
PY

models_follow_their_inputs() {
    code 0 "$swerve" correlate gains.json --json
    python3 - <<'PY' || fail "a car that gains speed"
import json
models = json.load(open("out"))["models"]
for at in models["straight"]:
    t = at["horizon_s"]
    assert abs(at["position_m"]["mean"] - t * t / 2) < 1e-6 and abs(at["speed_mps"]["mean"] - t) < 1e-6, at
    assert abs(at["along_m"]["mean"] + t * t / 2) < 1e-6  # it falls behind
for name in ("kinematic", "single_track"):
    for at in models[name]:
        assert at["position_m"]["mean"] < 0.02 and at["speed_mps"]["mean"] < 0.02, (name, at)
assert [at["position_m"]["windows"] for at in models["straight"]] == [6, 5, 4, 2]
PY
    code 0 "$swerve" correlate circle.json --json
    python3 - <<'PY' || fail "a car on a circle"
import json, math
models = json.load(open("out"))["models"]
for at in models["straight"]:
    a = 0.2 * at["horizon_s"]
    error = 40 * math.hypot(math.sin(a) - a, 1 - math.cos(a))
    assert abs(at["position_m"]["mean"] - error) < 0.02, at
for at in models["kinematic"]:
    # The bicycle's heading is that of its body, the recording's that of its motion: 0.035 rad here.
    assert at["position_m"]["mean"] < 0.06 * 8 * at["horizon_s"], at
PY
}
realism_is_a_likelihood() {
    # Of 51 samples 49 have a speed, all in one of ten bins with 0.1 more in each; two have no neighbour.
    code 0 "$swerve" correlate even.json --json
    python3 - <<'PY' || fail "a car at an even speed"
import json
realism = json.load(open("out"))["realism"]
straight = {name: at["mean"] for name, at in realism["traffic_straight"].items()}
assert abs(straight["linear_speed"] - 49.1 / 52) < 1e-9, straight
assert abs(straight["collision_indication"] - 1.001 / 1.002) < 1e-9 and straight["mean"] > 0.9, straight
assert 0 < realism["traffic"]["mean"]["mean"] <= 1
PY
    code 0 "$swerve" correlate gains.json --json
    python3 - <<'PY' || fail "a car that gains speed is unlikely under an even one"
import json
realism = json.load(open("out"))["realism"]
assert realism["traffic_straight"]["linear_speed"]["mean"] < 0.3
PY
    code 0 "$swerve" correlate gains.json
    says out 'realism of traffic'
    says out '0 to 1, 1 is best'
}
scenes_are_what_is_drawn() {
    code 0 "$swerve" correlate gains.json --json
    python3 -c 'import json; d = json.load(open("out"))["models"]["straight"][0]["position_m"]; assert d["low"] is None and d["scenes"] == 1' ||
        fail "an interval from one scene"
    code 0 "$swerve" correlate gains.json circle.json stands.json --json
    python3 - <<'PY' || fail "two scenes"
import json
d = json.load(open("out"))
at = d["models"]["straight"][0]["position_m"]
assert d["scenes"] == 2 and d["without_recording"] == 1 and at["scenes"] == 2 and at["low"] is None
PY
    code 0 "$swerve" correlate gains.json circle.json gains0.json gains1.json gains2.json --json
    python3 - <<'PY' || fail "five scenes"
import json
at = json.load(open("out"))["models"]["straight"][0]["position_m"]
assert at["scenes"] == 5 and 0 < at["low"] < at["mean"] < at["high"]
PY
    code 0 "$swerve" correlate gains.json
    says out '1 recorded vehicle in 1 scene'
    code 3 "$swerve" correlate stands.json
    says err 'expected scenarios with recorded vehicles'
    code 3 "$swerve" correlate nowhere.json
    code 2 "$swerve" correlate
}
tokens_foresee_beside_default_drivers() {
    code 0 "$swerve" correlate gains.json --json --rows seen.rows
    python3 - <<'PY' || fail "rows of a car that gains speed"
import struct
rows = list(struct.iter_unpack("<75f", open("seen.rows", "rb").read()))
assert len(rows) == 10, len(rows)
for k, row in enumerate(rows):
    scene, beyond, inputs = row[0], row[1], row[2:]
    assert scene == 0 and abs(inputs[0] - (10 + k / 2) / 20) < 1e-5, row
    assert abs(inputs[5] - 0.5) < 1e-4  # 1 m/s2, halved
    if k == 0:  # of a constant acceleration IDM leaves the same over, while the speed is
        assert abs(beyond - (1 - 2 * inputs[6])) < 0.2, row
# A network of zeroes whose one token is 2 m/s2.
shapes = {"weight_0": [73, 2], "bias_0": [2], "weight_1": [2, 2], "bias_1": [2], "weight_2": [2, 1], "bias_2": [1],
          "centres": [1]}
import json, math
header, at = {}, 0
for name, shape in shapes.items():
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * math.prod(shape)]}
    at += 4 * math.prod(shape)
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("two.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(at - 4) + struct.pack("<f", 2))
PY
    code 0 "$swerve" correlate gains.json --json --tokens two.safetensors
    python3 - <<'PY' || fail "a network beside default drivers"
import json
d = json.load(open("out"))
for at, foreseen, tokens in zip(d["foresight"], d["models"]["foreseen"], d["models"]["tokens"]):
    less = tokens["position_m"]["mean"] - foreseen["position_m"]["mean"]
    assert abs(at["tokens_less_foreseen_m"]["mean"] - less) < 1e-9 and tokens["along_m"]["mean"] > 0, at
PY
    code 0 "$swerve" correlate gains.json --tokens two.safetensors
    says out 'by tokens'
    code 0 "$swerve" correlate gains.json --json --tokens two.safetensors --samples 4
    python3 - <<'PY' || fail "futures of a network that is sure"
import json
d = json.load(open("out"))["samples"]
tokens = json.load(open("out"))["models"]["tokens"]
assert d["futures"] == 4
for at, nominal in zip(d["energy"], tokens):  # all futures are the nominal one
    assert abs(at["tokens_m"]["mean"] - nominal["position_m"]["mean"]) < 1e-9, (at, nominal)
    less = at["tokens_m"]["mean"] - at["drivers_m"]["mean"]
    assert abs(at["tokens_less_drivers_m"]["mean"] - less) < 1e-9, at
for of in d["of"].values():
    assert of["overlaps"]["mean"] == 0, d
assert d["of"]["recorded"]["answers"]["mean"] is None
PY
    code 0 "$swerve" correlate gains.json --tokens two.safetensors --samples 4
    says out '4 futures of each'
    python3 - <<'PY'
import json
def log(x0, y):
    return [[k / 10, round(x0 + k, 1), y, 0, 10] for k in range(61)]
for name, y in (("follows", 0), ("beside", 3.5), ("in_one_place", 0)):
    scene = json.load(open("even.json"))
    behind = log(27 if name == "in_one_place" else 10, y)
    scene["map"]["lanes"].append({"id": "left", "centre_line": [[-100, 3.5], [900, 3.5]], "width_m": 3.5})
    scene["agents"][0].update(trajectory=behind, speed_mps=10, pose={"x_m": behind[0][1], "y_m": y, "heading_rad": 0})
    if name == "in_one_place":  # a second car meets it after 2 s, in the recording
        other = [[k / 10, round(12 + 1.75 * k, 2) if k < 20 else 47.0 + k - 20, 0, 0, 17.5 if k < 20 else 10] for k in range(61)]
        scene["agents"].append(dict(scene["agents"][0], id="other", trajectory=other, speed_mps=17.5,
                                    pose={"x_m": 12, "y_m": 0, "heading_rad": 0}))
    scene.update(id=name, ego={"pose": {"x_m": 100 if name == "in_one_place" else 30, "y_m": 0, "heading_rad": 0},
                               "speed_mps": 10, "route": ["east"], "log": log(30, 0)})
    if name == "in_one_place":
        scene["ego"]["log"] = log(100, 0)
    json.dump(scene, open(name + ".json", "w"))
PY
    for scene in follows beside in_one_place; do
        code 0 "$swerve" correlate $scene.json --json --tokens two.safetensors --samples 4; cp out $scene.out
    done
    python3 - <<'PY' || fail "followers answer, and who overlaps is counted"
import json
of = {name: json.load(open(name + ".out"))["samples"]["of"] for name in ("follows", "beside", "in_one_place")}
assert of["follows"]["tokens"]["answers"]["mean"] == 1 and of["follows"]["tokens"]["answers"]["windows"] == 8, of
assert of["beside"]["tokens"]["answers"]["mean"] is None and of["in_one_place"]["tokens"]["answers"]["mean"] is None
assert of["in_one_place"]["recorded"]["overlaps"]["mean"] == 1 and of["in_one_place"]["tokens"]["overlaps"]["mean"] == 0, of
assert all(of["follows"][who][what]["mean"] == 0 for who in of["follows"] for what in ("overlaps", "off_road"))
PY
    code 2 "$swerve" correlate gains.json --samples 4
    says err 'samples goes with --tokens'
    code 2 "$swerve" correlate gains.json --tokens two.safetensors --samples 1
    says err 'expected 2 to 256, found 1'
    code 0 "$swerve" correlate gains.json --json
    python3 -c 'import json; d = json.load(open("out")); assert "tokens" not in d["models"]' || fail "tokens without a network"
    printf 'no tensors' > other.safetensors
    code 3 "$swerve" correlate gains.json --tokens other.safetensors
    says err 'other.safetensors'
    code 4 "$swerve" correlate gains.json --rows nowhere/seen.rows
    says err 'cannot write nowhere/seen.rows'
}

t models_follow_their_inputs
t realism_is_a_likelihood
t scenes_are_what_is_drawn
t tokens_foresee_beside_default_drivers
echo "1..$count" >&3
[ "$failed" = 0 ]
