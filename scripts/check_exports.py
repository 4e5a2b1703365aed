"""Compares what other projects read in exports with what `swerve show` says.

usage: check_exports.py FOLDER   (made by scripts/check_exports)
"""
import base64
import json
import math
import pathlib
import sys

import junitparser
import pandas
import pyarrow.feather
from mcap.reader import make_reader


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def number(value):
    return math.nan if value is None else float(value)


def check_tables(folder, outcomes):
    tables = [pandas.read_csv(folder / "t.csv", float_precision="round_trip"), pandas.read_parquet(folder / "t.parquet"),
              pyarrow.feather.read_table(folder / "t.arrow").to_pandas()]
    for table in tables:
        assert len(table) == len(outcomes), (len(table), len(outcomes))
        for at, outcome in enumerate(outcomes):
            row = table.iloc[at]
            for name, value in outcome["metrics"].items():
                if isinstance(value, str) and value not in ("inf", "-inf"):
                    assert row[name] == value, (at, name, row[name], value)
                else:
                    found, expected = number(row[name]), number(value)
                    assert found == expected or (found != found and expected != expected), (at, name)
            for name in ("id", "scenario_id", "verdict", "tier", "trace_hash", "seed", "device_ns"):
                assert row[name] == outcome[name], (at, name, row[name], outcome[name])
            assert (row["reasons"] if isinstance(row["reasons"], str) else "") == ";".join(outcome["reasons"])
    assert str(tables[1].dtypes["seed"]) == "uint64"


def check_junit(folder, outcomes):
    cases = list(list(junitparser.JUnitXml.fromfile(str(folder / "t.junit")))[0])
    mains = [o for o in outcomes if o["branch_id"] == "" and o["audit_of"] == 0]
    assert len(cases) == len(mains) > 0
    for case, main in zip(cases, mains):
        assert case.name.startswith(main["scenario_id"] + " [")
        assert bool(case.result) == (main["verdict"] != "pass")


def check_mcap(folder, ticks):
    with open(folder / "t.mcap", "rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        counts, states, pictures = {}, [], 0
        for _, channel, message in reader.iter_messages():
            counts[channel.topic] = counts.get(channel.topic, 0) + 1
            data = json.loads(message.data)
            if channel.topic == "/ego":
                states.append(data)
            if channel.topic == "/camera/front":
                assert base64.b64decode(data["data"]).startswith(b"\x89PNG")
                pictures += 1
        statistics = reader.get_summary().statistics
    assert counts["/ego"] == counts["/tf"] == counts["/scene"] == pictures == len(ticks), counts
    assert statistics.message_count == sum(counts.values())
    for state, tick in zip(states, ticks):
        assert state["tick"] == tick["tick"]
        assert math.isclose(state["speed_mps"], tick["speed_mps"], rel_tol=1e-8, abs_tol=1e-12)


def main():
    folder = pathlib.Path(sys.argv[1])
    outcomes = rows(folder / "all.jsonl")
    check_tables(folder, outcomes)
    check_junit(folder, outcomes)
    check_mcap(folder, rows(folder / "trace.jsonl"))
    print(f"exports: {len(outcomes)} outcomes read back by pandas, pyarrow, junitparser and mcap")


main()
