#!/usr/bin/env python3
"""Writes what a swerve binary, with swerve-import beside it, is made of as a CycloneDX 1.5 document, and checks such documents.

Usage: sbom.py BINARY [-o FILE]     components: our sources, shipped models, every shared library that
                                    the loader takes with the Debian package it comes from, build tools
       sbom.py --check FILE [BINARY]    required fields of the specification; with a binary, that no
                                    library of it is missing and that it is the one described

The same binary on the same machine gives the same document: the serial number is made of its digests
and the time is SOURCE_DATE_EPOCH, else that of the commit.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = {"gcc": "gcc", "meson": "meson", "ninja": "ninja-build", "python3": "python3"}
TYPES = {"application", "framework", "library", "container", "platform", "operating-system", "device",
         "device-driver", "firmware", "file", "machine-learning-model", "data"}


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True,
                          env=os.environ | {"LC_ALL": "C"}).stdout


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sources() -> list[pathlib.Path]:
    """Files that a build of the product reads; tests and scenarios are none of it."""
    rooms = ("base", "schemas", "kernels", "engine", "scenarios", "store", "scheduler", "report", "cli", "worker", "scripts")
    kinds = {".c", ".h", ".cu", ".cuh", ".sql", ".css", ".js", ".py", ".json", ".yaml", ".build"}
    found = [p for room in rooms for p in (ROOT / room).rglob("*")
             if p.is_file() and (p.suffix in kinds or p.name == "meson.build")
             and "__pycache__" not in p.parts]
    return sorted(found + [ROOT / "meson.build", ROOT / "meson_options.txt"])


def source_digest() -> str:
    digest = hashlib.sha256()
    for path in sources():
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def version() -> str:
    return re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)


def helper(binary: pathlib.Path) -> pathlib.Path:
    """The program that the binary starts for imports; it lies beside it."""
    return binary.with_name("swerve-import")


def libraries(binary: pathlib.Path) -> dict[str, pathlib.Path]:
    """Names of the shared libraries that the loader takes for both, with their files. Reads our own binaries."""
    found = {}
    for line in (run("ldd", str(binary)) + run("ldd", str(helper(binary)))).splitlines():
        match = re.match(r"\s*(\S+)(?: => (\S+))? \(0x", line)
        if match and "vdso" not in match.group(1):
            path = match.group(2) or match.group(1)
            found[os.path.basename(match.group(1))] = pathlib.Path(os.path.realpath(path))
        elif "not found" in line:
            sys.exit(f"sbom: {binary}: {line.strip()}")
    return found


def owners(paths: list[pathlib.Path]) -> dict[pathlib.Path, str]:
    """The Debian packages of files, which may be registered below /lib or /usr/lib."""
    names = {}
    for path in paths:
        for name in (str(path), str(path).removeprefix("/usr"), "/usr" + str(path)):
            names[name] = path
    asked = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True)
    found = {}
    for line in asked.stdout.splitlines():
        packages, _, name = line.partition(": ")
        if name in names:
            found[names[name]] = packages.split(",")[0]
    return found


def packages(names: list[str]) -> dict[str, dict]:
    """Components by the name that was asked for."""
    form = "${binary:Package}\t${Package}\t${Version}\t${Architecture}\t${source:Package} ${source:Version}\n"
    found = {}
    for line in run("dpkg-query", "-W", f"-f={form}", *sorted(set(names))).splitlines():
        full, name, number, machine, source = line.split("\t")
        escaped = number.replace("+", "%2B").replace(":", "%3A")
        found[full] = found[name] = {
            "type": "library",
            "bom-ref": f"pkg:deb/debian/{name}@{number}?arch={machine}",
            "name": name,
            "version": number,
            "purl": f"pkg:deb/debian/{name}@{escaped}?arch={machine}",
            "properties": [{"name": "debian:source", "value": source}],
        }
    return found


def timestamp() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        asked = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"],
                               capture_output=True, text=True)
        epoch = asked.stdout.strip() or "0"
    return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def document(binary: pathlib.Path) -> dict:
    own = f"swerve@{version()}"
    components, linked = {}, {}
    shared = libraries(binary)
    tools = {tool: pathlib.Path(os.path.realpath(f"/usr/bin/{tool}")) for tool in TOOLS}
    owned = owners([*shared.values(), *tools.values()])
    known = packages([*owned.values(), *(name for tool, name in TOOLS.items() if tools[tool] not in owned)])
    for soname, path in shared.items():
        component = known[owned[path]] if path in owned else {
            "type": "library", "bom-ref": f"file:{soname}", "name": soname, "properties": [],
            "hashes": [{"alg": "SHA-256", "content": sha256(path)}]}
        component["scope"] = "required"
        component["properties"].append({"name": "swerve:shared-library", "value": soname})
        components[component["bom-ref"]] = component
        linked[component["bom-ref"]] = True
    for tool, name in TOOLS.items():
        component = known[owned.get(tools[tool], name)]
        if component["bom-ref"] not in linked:
            component |= {"type": "application", "scope": "excluded"}
        component["properties"].append({"name": "swerve:build-tool", "value": tool})
        components[component["bom-ref"]] = component
    for path in sorted((ROOT / "engine/models").glob("*.safetensors")):
        components[f"model:{path.stem}"] = {
            "type": "machine-learning-model", "bom-ref": f"model:{path.stem}", "name": path.stem,
            "version": version(), "hashes": [{"alg": "SHA-256", "content": sha256(path)}]}
        linked[f"model:{path.stem}"] = True
    importers = helper(binary)
    components[importers.name] = {
        "type": "application", "bom-ref": importers.name, "name": importers.name, "version": version(),
        "hashes": [{"alg": "SHA-256", "content": sha256(importers)}]}
    linked[importers.name] = True
    sources_hash, binary_hash = source_digest(), sha256(binary)
    serial = uuid.uuid5(uuid.NAMESPACE_URL, f"swerve:{sources_hash}:{binary_hash}:{sha256(importers)}:{sorted(components)}")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(),
            "component": {
                "type": "application", "bom-ref": own, "name": "swerve", "version": version(),
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "hashes": [{"alg": "SHA-256", "content": binary_hash}],
                "properties": [{"name": "swerve:sources-sha256", "value": sources_hash}],
            },
        },
        "components": [components[ref] for ref in sorted(components)],
        "dependencies": [{"ref": own, "dependsOn": sorted(linked)}]
        + [{"ref": ref} for ref in sorted(components)],
    }


def problems(bom: dict, binary: pathlib.Path | None) -> list[str]:
    found = []

    def need(condition: bool, text: str) -> None:
        if not condition:
            found.append(text)

    need(bom.get("bomFormat") == "CycloneDX", 'bomFormat: expected "CycloneDX"')
    need(bom.get("specVersion") == "1.5", 'specVersion: expected "1.5"')
    need(re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom.get("serialNumber", ""))
         is not None, "serialNumber: expected urn:uuid:..")
    need(isinstance(bom.get("version"), int) and bom["version"] >= 1, "version: expected 1 or more")
    metadata = bom.get("metadata", {})
    need(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata.get("timestamp", "")) is not None,
         "metadata.timestamp: expected a date and time")
    own = metadata.get("component", {})
    refs = set()
    for place, part in [("metadata.component", own)] + [
            (f"components[{i}]", part) for i, part in enumerate(bom.get("components", []))]:
        need(part.get("type") in TYPES, f"{place}.type: not one of the specification")
        need(bool(part.get("name")), f"{place}.name: missing")
        need(bool(part.get("version") or part.get("hashes")), f"{place}: neither version nor hash")
        need(part.get("scope", "required") in ("required", "optional", "excluded"), f"{place}.scope")
        need(bool(part.get("bom-ref")) and part["bom-ref"] not in refs, f"{place}.bom-ref: missing or repeated")
        refs.add(part.get("bom-ref"))
        for entry in part.get("hashes", []):
            need(entry.get("alg") == "SHA-256" and re.fullmatch("[0-9a-f]{64}", entry.get("content", ""))
                 is not None, f"{place}.hashes: expected SHA-256")
        for entry in part.get("properties", []):
            need(set(entry) == {"name", "value"}, f"{place}.properties: expected name and value")
    for entry in bom.get("dependencies", []):
        for ref in [entry.get("ref"), *entry.get("dependsOn", [])]:
            need(ref in refs, f"dependencies: {ref} is no component")
    if binary is not None:
        named = {p["value"] for part in bom.get("components", []) for p in part.get("properties", [])
                 if p.get("name") == "swerve:shared-library"}
        for soname in libraries(binary):
            need(soname in named, f"{soname}: linked by {binary}, not listed")
        parts = [own, *(part for part in bom.get("components", []) if part.get("name") == helper(binary).name)]
        hashes = [part.get("hashes", [{}])[0].get("content") for part in parts]
        need(hashes[:1] == [sha256(binary)], f"{binary}: another binary")
        need(hashes[1:] == [sha256(helper(binary))], f"{helper(binary)}: another binary")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", metavar="FILE", type=pathlib.Path)
    parser.add_argument("binary", nargs="?", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    if options.check is not None:
        bom = json.loads(options.check.read_text())
        found = problems(bom, options.binary)
        for text in found:
            print(f"{options.check}: {text}")
        print(f"{options.check}: {len(bom.get('components', []))} components, {len(found)} problems")
        return 1 if found else 0
    if options.binary is None:
        parser.error("which binary?")
    text = json.dumps(document(options.binary), indent=1) + "\n"
    if options.output is not None:
        options.output.write_text(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
