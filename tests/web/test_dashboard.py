#!/usr/bin/env python3
"""Goal: a browser that opens a server sees its suites, slices and rollouts; what others have named is
shown as text; on a server with tokens the page shows nothing of the store until a token is given, and
strange pages may ask for nothing.
Method: a store whose suite and planner are named after markup, served with and without tokens; the page
rendered by headless Chromium, whose document is searched; requests with the headers that browsers add.

Usage: test_dashboard.py SWERVE SOURCE_ROOT. Without Chromium it is skipped (77), but not where CI is set.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

SWERVE = os.path.realpath(sys.argv[1])
HOSTILE = "<img src=x id=pwned onerror=document.title=1>"
SCENARIO = {
    "id": "cruise", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [400, 0]], "width_m": 3.5,
                                       "speed_limit_mps": 15}]},
    "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
    "slices": {"weather": "fog", "road": "urban"},
    "branches": [{"id": "brake", "at_tick": 5, "interventions": [{"kind": "ego_brake", "tick": 6, "decel_mps2": 4}]}],
    "horizon_s": 2}

failures = 0


def check(condition, what):
    global failures
    print(("ok - " if condition else "not ok - ") + what, flush=True)
    failures += not condition


class Server:
    """`swerve serve` on a free port."""

    def __init__(self, store, *options):
        self.process = subprocess.Popen([SWERVE, "serve", "--store", store, "--listen", "127.0.0.1:0", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1])

    def ask(self, path, method="GET", body=None, **headers):
        """(code, headers, text); headers: fetch_site=.. for Sec-Fetch-Site."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        names = {"token": "Authorization", "fetch_site": "Sec-Fetch-Site", "origin": "Origin", "host": "Host"}
        sent = {names[k]: ("Bearer " + v if k == "token" else v) for k, v in headers.items()}
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=30)


def render(chromium, profile, url):
    """The document that the page has made of itself."""
    run = subprocess.run([chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                          f"--user-data-dir={profile}", "--virtual-time-budget=4000", "--dump-dom", url],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=90, check=False)
    return run.stdout


def submit_hostile(server):
    """A suite of a strange name with a job that nobody runs, by a planner of a strange name."""
    spec = {"key": "0" * 64, "suite_id": "", "scenario_id": HOSTILE, "scenario_hash": "", "planner": HOSTILE,
            "planner_hash": "", "pool": "<i>pool</i>", "tier": "object", "model_hash": "", "sampler": "", "backend": "cpu",
            "revision": "", "seed": 0, "priority": 0, "rollout_count": 1, "attempts_max": 1, "parent_job_id": 0,
            "prefix_key": "", "audit_key": ""}
    body = json.dumps({"weight": 1, "common": spec, "jobs": [{}]})
    code, _, text = server.ask("/v1/suites/" + urllib.parse.quote(HOSTILE, safe="") + "/jobs", "POST", body)
    check(code == 200, f"a suite with a strange name is taken ({code} {text[:200]})")


def headers_and_origins(server):
    code, headers, text = server.ask("/")
    policy = headers.get("Content-Security-Policy", "")
    check(code == 200 and "text/html" in headers["Content-Type"], "the page is there")
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        check(part in policy, f"the policy says {part}")
    check("unsafe" not in policy, "the policy allows nothing inline")
    check(headers.get("X-Content-Type-Options") == "nosniff", "types are not guessed")
    check(re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", text) is None, "no script or style is inline")
    check(re.findall(r'(?:src|href)="(?!/web/|#|data:,)', text) == [], "nothing comes from another host")
    for name in re.findall(r'/web/([\w.]+)', text):
        code, headers, _ = server.ask("/web/" + name)
        check(code == 200 and headers.get("X-Content-Type-Options") == "nosniff", f"/web/{name} is there")
    check(server.ask("/web/nothing.js")[0] == 404, "other files are not")
    check(server.ask("/web/..%2f..%2fetc%2fpasswd")[0] == 404, "nor are those of the disk")
    for path, method in (("/v1/overview", "GET"), ("/v1/suites/s/cancel", "POST")):
        check(server.ask(path, method, "{}" if method == "POST" else None, origin="http://evil.example")[0] == 403,
              f"{method} {path}: a strange page is refused")
        check(server.ask(path, method, "{}" if method == "POST" else None, fetch_site="cross-site")[0] == 403,
              f"{method} {path}: and so is another site")
    own = f"127.0.0.1:{server.port}"
    check(server.ask("/v1/overview", origin="http://" + own, fetch_site="same-origin")[0] == 200, "its own page is not")
    check(server.ask("/v1/overview", host="evil.example")[0] == 403, "a name that anybody could point here is refused")
    check(server.ask("/", fetch_site="cross-site")[0] == 200, "anybody may link to the page")


def pages(chromium, profile, server, suite):
    seen = render(chromium, profile, server.url + "/")
    check(HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in seen, "a suite named after markup is shown as text")
    check('id="pwned"' not in seen and "<title>Swerve</title>" in seen, "and does nothing")
    check("&lt;i&gt;pool" in seen, "a pool's name likewise")
    check(suite in seen and "100%" in seen and "builtin:reference" in seen and "<time" in seen,
          "the suite that was run is shown, whole, with planner and date")
    seen = render(chromium, profile, f"{server.url}/#/suite/{suite}")
    check("weather: fog" in seen and "road: urban" in seen, "a suite shows its slices")
    rows = re.findall(r'href="#/outcome/(\d+)"', seen)
    check(len(rows) == 2, f"and its two rollouts ({rows})")
    seen = render(chromium, profile, f"{server.url}/#/suite/{suite}?branches=no")
    check(len(re.findall(r'href="#/outcome/(\d+)"', seen)) == 1, "or its main line alone")
    seen = render(chromium, profile, f"{server.url}/#/suite/{suite}?slice=weather:rain")
    check("No rollout fits" in seen, "a slice without rollouts is empty")
    outcome = json.loads(server.ask("/v1/outcomes?limit=1")[2])["outcomes"][0]
    seen = render(chromium, profile, f"{server.url}/#/outcome/{outcome['id']}")
    check(outcome["trace_hash"] in seen and f"swerve replay {outcome['id']}" in seen, "a rollout shows hash and commands")
    seen = render(chromium, profile, f"{server.url}/#/suite/nothing")
    check("the store has no suite" in seen, "a suite that is not there is said to be so")


def with_tokens(chromium, profile, work, store, suite):
    tokens = {}
    for role in ("read", "worker"):
        pool = ["--pool", "bulk"] if role == "worker" else []
        done = subprocess.run([SWERVE, "token", "add", role, "--role", role, "--store", store, *pool, "--output",
                               str(work / role)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        check(done.returncode == 0, f"a token with the role {role}: {done.stdout.strip()[:80]}")
        tokens[role] = (work / role).read_text(encoding="utf-8").strip()
    server = Server(store)
    seen = render(chromium, profile, f"{server.url}/#/suite/{suite}")
    form = re.search(r'<form id="ask"[^>]*>', seen)
    check(form is not None and "hidden" not in form.group(0), "without a token the page asks for one")
    check(seen.count(suite) == 0 and "weather" not in seen, "and shows nothing of the store")
    for path in ("/v1/overview", "/v1/workers", f"/v1/suites/{suite}/slices", "/v1/outcomes"):
        check(server.ask(path)[0] == 401, f"{path} without a token: 401")
        check(server.ask(path, token=tokens["worker"])[0] == 403, f"{path} with a worker's token: 403")
        check(server.ask(path, token=tokens["read"])[0] == 200, f"{path} with a reader's token: 200")
    check(server.stop() == 0, "the server ends in order")


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("chromium is not installed (scripts/setup test)", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 77)
    with tempfile.TemporaryDirectory(prefix="swerve-dashboard-") as directory:
        work = pathlib.Path(directory)
        profile = work / "profile"
        store = str(work / "jobs.db")
        (work / "cruise.json").write_text(json.dumps(SCENARIO), encoding="utf-8")
        subprocess.run([SWERVE, "run", str(work / "cruise.json"), "--world", "object", "--store", store], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = Server(store)
        suite = json.loads(server.ask("/v1/suites")[2])["suites"][0]
        headers_and_origins(server)
        submit_hostile(server)
        pages(chromium, profile, server, suite)
        check(server.stop() == 0, "the server ends in order")
        with_tokens(chromium, profile, work, store, suite)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
