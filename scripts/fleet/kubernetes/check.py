#!/usr/bin/env python3
"""Checks the Kubernetes files beside it: the cluster's own kinds against the published schemas, strictly (no unknown members),
KEDA's by the members that its documents name; and that what they say of Swerve is so: options that commands have, waits that
fit into one another.

Usage: check_kubernetes.py [SWERVE]       needs PyYAML and kubernetes-validate (PyPI)
"""
import pathlib
import re
import subprocess
import sys

import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "1.29"  # ReadWriteOncePod is stable from here on
KEDA = {  # members of the specs that keda.yaml uses, by https://keda.sh/docs/2.16/reference/scaledobject-spec/
    "TriggerAuthentication": {"secretTargetRef"},
    "ScaledObject": {"scaleTargetRef", "pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount", "advanced",
                     "triggers"},
}
METRICS_API = {"url", "valueLocation", "targetValue", "authMode"}  # https://keda.sh/docs/2.16/scalers/metrics-api/


def containers(document):
    spec = document.get("spec", {})
    pod = spec.get("template", {}).get("spec", {})
    return pod, pod.get("containers", [])


def check_waits(document, problems):
    """A preStop's wait and a worker's grace end before the cluster kills; the wait outlasts the grace, since TERM comes after it."""
    pod, each = containers(document)
    for container in each:
        words = [str(word) for word in container.get("args", [])]
        if "--grace-ms" not in words:
            continue
        grace_s = int(words[words.index("--grace-ms") + 1]) / 1000
        hook = " ".join(container["lifecycle"]["preStop"]["exec"]["command"])
        wait_s = int(re.search(r"sleep (\d+)", hook).group(1))
        if not grace_s < wait_s < pod["terminationGracePeriodSeconds"]:
            problems.append(f"{document['metadata']['name']}: expected grace < preStop < termination, found {grace_s}, {wait_s}, "
                            f"{pod['terminationGracePeriodSeconds']} s")


def check_options(document, swerve, problems):
    for container in containers(document)[1]:
        words = [str(word) for word in container.get("args", [])]
        known = set(re.findall(r"--[a-z-]+", subprocess.run([swerve, words[0], "--help"], capture_output=True, text=True,
                                                             check=True).stdout))
        for word in words:
            if word.startswith("--") and word not in known:
                problems.append(f"{document['metadata']['name']}: swerve {words[0]} has no {word}")


def check_keda(document, problems):
    kind = document["kind"]
    for member in set(document["spec"]) - KEDA[kind]:
        problems.append(f"{document['metadata']['name']}: {kind} has no {member}")
    for trigger in document["spec"].get("triggers", []):
        for member in set(trigger["metadata"]) - METRICS_API:
            problems.append(f"{document['metadata']['name']}: metrics-api has no {member}")


def main():
    swerve = sys.argv[1] if len(sys.argv) > 1 else None
    problems, count, names = [], 0, {}
    for path in sorted(HERE.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            count += 1
            names[document["kind"], document["metadata"]["name"]] = path.name
            if document["apiVersion"].startswith("keda.sh/"):
                check_keda(document, problems)
                continue
            try:
                kubernetes_validate.validate(document, VERSION, strict=True)
            except kubernetes_validate.ValidationError as error:
                problems.append(f"{path.name}: {document['kind']}: {'.'.join(map(str, error.path))}: {error.message}")
            check_waits(document, problems)
            if swerve is not None:
                check_options(document, swerve, problems)
    if ("Deployment", "swerve-bulk") not in names:
        problems.append("the Deployment that KEDA scales is missing")
    print("\n".join([*problems, f"{count} documents, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
