#!/usr/bin/env python3
"""Checks that every shipped scenario, map and suite document agrees with its JSON Schema, and that the table of
the store's calls has the paths and queries of schemas/openapi.yaml."""
import json
import pathlib
import re
import sys

import jsonschema
import yaml


def kind_of(document: dict) -> str:
    if "protocols" in document:
        return "protocols"
    if "triggering_conditions" in document:
        return "traceability"
    if "exposures" in document:
        return "exposure"
    if "cameras" in document:
        return "rig"
    if "scenarios" in document or "suites" in document:
        return "suite"
    return "scenario" if "ego" in document else "map"


def calls_of_table(text: str) -> dict:
    """Members of the query of each route of store/api/calls.h."""
    calls = {}
    for row in re.split(r"\b(?:ROUTED|PLAIN)\(", text)[1:]:
        route = re.match(r'\w+, \w+, "(\w+)", "([^"]+)"', row)
        if route is None:
            continue
        keys = {key for names in re.findall(r"KEYS\(([^)]*)\)", row) for key in re.findall(r'"(\w+)"', names)}
        keys |= set(re.findall(r"MAYBE\((\w+)\)", row)) | ({"after"} if re.search(r"AFTER(_ID)?\(", row) else set())
        calls[route.groups()] = keys | ({"max"} if re.search(r"ROWS\([^)]*, [A-Z_]+, \w+\)", row) else set())
    return calls


def calls_described(api: dict) -> dict:
    """The same of the API's description, whose paths have names in place of stars."""
    calls = {}
    for path, item in api["paths"].items():
        for method in item.keys() & {"get", "put", "post"}:
            parameters = item.get("parameters", []) + item[method].get("parameters", [])
            named = [api["components"]["parameters"][p["$ref"].split("/")[-1]] if "$ref" in p else p for p in parameters]
            keys = {p["name"] for p in named if p["in"] == "query"}
            calls[method.upper(), re.sub(r"{\w+}", "*", path)] = keys
    return calls


def check_calls(root: pathlib.Path) -> int:
    described = calls_described(yaml.safe_load((root / "schemas/openapi.yaml").read_text()))
    table = (root / "store/api/calls.h").read_text()
    rows = calls_of_table(table[table.index("#define STORE_CALLS"):table.index("/* clang-format on */")])
    wrong = [call for call, keys in rows.items() if described.get(call) != keys]
    for call in wrong:
        print(f"{' '.join(call)}: query of {rows[call]} in store/api/calls.h, of {described.get(call)} as described")
    return len(wrong) if rows else 1


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    validators = {}
    for kind in ("scenario", "suite", "protocols", "exposure", "traceability", "rig"):
        room = {"traceability": "report/traceability", "exposure": "schemas/fleet", "rig": "schemas/rig"}.get(kind, "schemas")
        schema = json.loads((root / f"{room}/{kind}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[kind] = jsonschema.Draft202012Validator(schema)
    bad, count = check_calls(root), 0
    for path in sorted([*(root / "scenarios").rglob("*.json"), *(root / "scripts/examples/rigs").glob("*.json")]):
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
