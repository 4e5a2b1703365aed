#!/usr/bin/env python3
"""The dashboard against a large store, and many that follow it beside workers: figures for SPEED.md, no test.

Makes a store with --outcomes finished rollouts (100,000), serves it, and says in milliseconds, the median of
--times loads in headless Chromium: first paint, and the time until the tables of suites, of a suite's
rollouts, of its slices and of one rollout are there. Then measures a worker's heartbeats alone, and again
beside --followers clients (200) of /v1/events while the store changes twice a second, half of which never read
what they are sent; alternated, --times rounds each, with the ratio of the 99th percentiles.

Usage: bench_dashboard.py SWERVE [--outcomes N] [--followers N] [--times N] [--pictures FOLDER]
"""
import argparse
import http.client
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "scripts"), str(TOP / "tests" / "web")]
import browser  # noqa: E402
import reader_abuse  # noqa: E402

VIEWS = [
    ("suites", "/", "document.querySelectorAll('main table tbody tr').length > 0"),
    ("rollouts", "/#/suite/big", "document.querySelectorAll('main a[href^=\"#/outcome/\"]').length >= 50"),
    ("slices", "/#/suite/big", "!document.body.innerText.match(/Counting|Counted so far/) && "
                               "document.body.innerText.includes('weather: rain')"),
    ("rollout", "/#/outcome/77", "document.body.innerText.includes('trace hash')"),
]
MARK = """window.marks = {}; const seen = () => { for (const [name, holds] of Object.entries(window.wanted || {})) {
  if (!(name in marks) && document.body && holds()) marks[name] = performance.now(); } requestAnimationFrame(seen); }; seen();"""


def serve(swerve, store):
    process = subprocess.Popen([swerve, "serve", "--store", store, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    return process, process.stdout.readline().strip()


def paints(url, times):
    with browser.Browser() as chromium:
        for name, path, holds in VIEWS:
            first, whole = [], []
            for _ in range(times + 1):
                page = chromium.page(url + path, before=f"window.wanted = {{{name}: () => {holds}}};" + MARK)
                page.wait(f"window.marks.{name}")
                whole.append(page.evaluate(f"window.marks.{name}"))
                page.wait("performance.getEntriesByName('first-contentful-paint').length > 0")
                first.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
                page.go("about:blank")
            print(f"{name:9} first paint {statistics.median(first[1:]):5.0f} ms  there {statistics.median(whole[1:]):5.0f} ms",
                  flush=True)


def pictures(url, folder):
    with browser.Browser() as chromium:
        for name, path, holds in VIEWS[:2] + VIEWS[3:]:
            for width, height in ((1400, 900), (420, 900)):
                page = chromium.page(url + path, width=width, height=height)
                page.wait(holds)
                page.screenshot(os.path.join(folder, f"dashboard_{name}_{width}.png"))


def heartbeats(port, count):
    """Milliseconds of each."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        connection.request("POST", "/v1/workers/w/heartbeat", json.dumps({"pool": "bulk", "device": "cpu", "progress": []}))
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        taken.append(1e3 * (time.perf_counter() - begin))
    return taken


def follow(port, reads, got, stop):
    connection = socket.create_connection(("127.0.0.1", port), timeout=120)
    connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    connection.settimeout(0.5)
    while not stop.is_set():
        if not reads:
            stop.wait()
            break
        try:
            bytes_read = len(connection.recv(1 << 16))
            got[0] += bytes_read
        except socket.timeout:
            pass
    connection.close()


def change(port, stop):
    spec = {"key": "", "suite_id": "", "scenario_id": "s", "scenario_hash": "", "planner": "p", "planner_hash": "", "pool": "none",
            "tier": "object", "model_hash": "", "sampler": "", "backend": "cpu", "revision": "", "seed": 0, "priority": 0,
            "rollout_count": 1, "attempts_max": 1, "parent_job_id": 0, "prefix_key": "", "audit_key": ""}
    number = 0
    while not stop.wait(0.5):
        number += 1
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/v1/suites/changing/jobs",
                           json.dumps({"weight": 1, "common": spec, "jobs": [{"key": f"{time.time_ns():064x}"[:63]}]}))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        connection.close()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def crowd(url, followers, times):
    port = int(url.rsplit(":", 1)[1])
    alone, beside, got = [], [], [0]
    for _ in range(times):
        alone += heartbeats(port, 300)
        stop = threading.Event()
        threads = [threading.Thread(target=follow, args=(port, i % 2 == 0, got, stop)) for i in range(followers)]
        threads.append(threading.Thread(target=change, args=(port, stop)))
        for thread in threads:
            thread.start()
        beside += heartbeats(port, 300)
        begin = time.perf_counter()
        while time.perf_counter() - begin < 3:
            beside += heartbeats(port, 50)
        stop.set()
        for thread in threads:
            thread.join()
    for name, values in (("alone", alone), ("beside", beside)):
        print(f"heartbeats {name:6} p50 {percentile(values, 0.5):6.2f} ms  p99 {percentile(values, 0.99):6.2f} ms  "
              f"slowest {max(values):6.1f} ms  ({len(values)})")
    print(f"ratio of p99 {percentile(beside, 0.99) / percentile(alone, 0.99):.1f}; followers read {got[0] / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("binary")
    parser.add_argument("--outcomes", type=int, default=100000)
    parser.add_argument("--followers", type=int, default=200)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--pictures", help="screenshots instead of figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swerve-bench-") as directory:
        store = os.path.join(directory, "big.db")
        process, _ = serve(options.binary, store)  # makes the file
        process.send_signal(signal.SIGTERM)
        process.wait()
        reader_abuse.fill(store, options.outcomes)
        process, url = serve(options.binary, store)
        try:
            if options.pictures:
                pictures(url, options.pictures)
            else:
                paints(url, options.times)
                crowd(url, options.followers, options.times)
        finally:
            process.send_signal(signal.SIGTERM)
            begin = time.perf_counter()
            process.wait()
            print(f"the server ended in {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    main()
