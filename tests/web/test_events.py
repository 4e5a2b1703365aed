#!/usr/bin/env python3
"""Goal: who follows a store's events hears of each change, sees what an overview says, hears no more once
its token is revoked or the server stops, and one token cannot take all places from others.
Method: `swerve serve` with tokens; streams read by hand over sockets; jobs submitted meanwhile. Waiting
is for lines of the stream, never for a time.

Usage: test_events.py SWERVE
"""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

SWERVE = os.path.realpath(sys.argv[1])
TOKEN_MAX = 256  # store/server/http_events.h

failures = 0


def check(condition, what):
    global failures
    print(("ok - " if condition else "not ok - ") + what, flush=True)
    failures += not condition


class Stream:
    """One follower."""

    def __init__(self, port, token):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.sendall(f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.code = int(self.file.readline().split()[1])
        self.headers = {}
        for line in iter(self.file.readline, b"\r\n"):
            name, value = line.decode().split(":", 1)
            self.headers[name.lower()] = value.strip()

    def lines(self):
        """Lines of the stream, its chunks put together; ends with the stream."""
        rest = b""
        while True:
            size = self.file.readline()
            if not size or int(size, 16) == 0:
                return
            rest += self.file.read(int(size, 16))
            self.file.readline()
            *whole, rest = rest.split(b"\n")
            yield from whole

    def overviews(self):
        for line in self.lines():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

    def close(self):
        self.file.close()
        self.socket.close()


def ask(port, method, path, token, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body=body, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def submit(port, token, suite):
    spec = {"key": "0" * 64, "suite_id": suite, "scenario_id": "s", "scenario_hash": "", "planner": "p", "planner_hash": "",
            "pool": "bulk", "tier": "object", "model_hash": "", "sampler": "", "backend": "cpu", "revision": "", "seed": 0,
            "priority": 0, "rollout_count": 1, "attempts_max": 1, "parent_job_id": 0, "prefix_key": "", "audit_key": ""}
    code, text = ask(port, "POST", f"/v1/suites/{suite}/jobs", token, json.dumps({"weight": 1, "common": spec, "jobs": [{}]}))
    check(code == 200, f"suite {suite} is taken ({code} {text[:100]})")


def make_token(store, work, name, role):
    subprocess.run([SWERVE, "token", "add", name, "--role", role, "--store", store, "--output", str(work / name)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (work / name).read_text(encoding="utf-8").strip()


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-events-") as directory:
        work = pathlib.Path(directory)
        store = str(work / "jobs.db")
        tokens = {name: make_token(store, work, name, role)
                  for name, role in (("me", "submit"), ("other", "read"), ("gone", "read"), ("greedy", "read"))}
        process = subprocess.Popen([SWERVE, "serve", "--store", store, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                   text=True)
        port = int(process.stdout.readline().strip().rsplit(":", 1)[1])

        stream = Stream(port, tokens["other"])
        check(stream.code == 200 and stream.headers["content-type"].startswith("text/event-stream"), "a stream of events")
        check(stream.headers["cache-control"] == "no-store", "that nobody keeps")
        overviews = stream.overviews()
        first = next(overviews)
        check(first["suites"] == [], "it begins with what there is")
        for suite in ("one", "two"):
            submit(port, tokens["me"], suite)
            seen = next(o for o in overviews if any(s["suite"] == suite for s in o["suites"]))
            asked = json.loads(ask(port, "GET", "/v1/overview", tokens["other"])[1])
            check(seen == asked, f"it tells of {suite} what an overview says")

        revoked = Stream(port, tokens["gone"])
        heard = revoked.overviews()
        next(heard)
        subprocess.run([SWERVE, "token", "revoke", "gone", "--store", store], check=True, stdout=subprocess.DEVNULL)
        submit(port, tokens["me"], "three")
        check(not any(s["suite"] == "three" for o in heard for s in o["suites"]), "a revoked token hears no more")
        check(Stream(port, tokens["gone"]).code == 401, "and does not come back")

        crowd = [Stream(port, tokens["greedy"]) for _ in range(TOKEN_MAX)]
        check(all(each.code == 200 for each in crowd), f"a token has {TOKEN_MAX} places")
        check(Stream(port, tokens["greedy"]).code == 429, "and no more")
        late = Stream(port, tokens["other"])
        check(late.code == 200 and next(late.overviews())["suites"][0]["suite"] == "three", "which others have still")

        process.terminate()
        check(sum(1 for _ in overviews) >= 0 and sum(1 for _ in late.lines()) >= 0, "streams end with the server")
        check(process.wait(timeout=30) == 0, "which ends in order, with a crowd that does not read")
        for each in crowd:
            each.close()
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
