#!/usr/bin/env python3
"""Checks that every shipped scenario, map and suite document agrees with its JSON Schema."""
import json
import pathlib
import sys

import jsonschema


def kind_of(document: dict) -> str:
    if "protocols" in document:
        return "protocols"
    if "triggering_conditions" in document:
        return "traceability"
    if "exposures" in document:
        return "exposure"
    if "scenarios" in document or "suites" in document:
        return "suite"
    return "scenario" if "ego" in document else "map"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    validators = {}
    for kind in ("scenario", "suite", "protocols", "exposure", "traceability"):
        room = {"traceability": "report/traceability", "exposure": "schemas/fleet"}.get(kind, "schemas")
        schema = json.loads((root / f"{room}/{kind}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[kind] = jsonschema.Draft202012Validator(schema)
    bad = count = 0
    for path in sorted((root / "scenarios").rglob("*.json")):
        document = json.loads(path.read_text())
        kind = kind_of(document)
        if kind == "map":
            continue  # a map is checked as part of the scenarios that use it
        count += 1
        for error in validators[kind].iter_errors(document):
            bad += 1
            print(f"{path.relative_to(root)}: {error.json_path}: {error.message[:200]}")
    print(f"{count} documents checked, {bad} problems")
    return 1 if bad or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
