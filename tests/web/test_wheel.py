#!/usr/bin/env python3
"""Goal: somebody can drive in a browser: a key sets the scenario going, frames come to the windscreen, the cameras and
the road from above, going back keeps what was driven when asked to, what is saved is driven by `swerve run`, and a session
goes on after its server has died.
Method: `swerve session serve` and Chromium; keys are held down as fingers do.

Usage: test_wheel.py SWERVE SOURCE_ROOT
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import browser

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
LIT = """(() => { const c = document.getElementById('%s'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
let low = 255, high = 0; for (let i = 1; i < d.length; i += 4) { low = Math.min(low, d[i]); high = Math.max(high, d[i]); } return high - low; })()"""
CODES = {"ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39}


class Stage:
    def __init__(self, work, chromium, url):
        self.work = work
        self.browser = chromium
        self.url = url

    def open(self, scenario, **kind):
        page = self.browser.page(self.url, **kind)
        page.wait("document.querySelectorAll('#scenario option').length === 8")
        page.evaluate(f"(() => {{ const s = document.getElementById('scenario'); s.value = '{scenario}'; s.onchange(); }})()")
        page.wait("document.getElementById('time').textContent.startsWith('0.0 of') && "
                  "document.getElementById('told').textContent.startsWith('Press')")
        return page


def hold(page, name, down):
    page.call("Input.dispatchKeyEvent", type="rawKeyDown" if down else "keyUp", key=name, code=name, windowsVirtualKeyCode=CODES[name])


def leave(page):
    """Its seat is free then."""
    assert not page.problems, page.problems
    page.go("about:blank")


def until(page, seconds):
    page.wait(f"parseFloat(document.getElementById('time').textContent) >= {seconds}")


def a_key_drives_and_a_drive_is_saved(stage):
    page = stage.open("following")
    before = page.text("#speed")
    hold(page, "ArrowUp", True)
    until(page, 1.5)
    assert page.text("#told") == "", page.text("#told")  # it says no more what to press
    hold(page, "ArrowUp", False)
    hold(page, "ArrowLeft", True)
    page.wait("parseFloat(document.getElementById('steer').textContent) > 0.3")
    hold(page, "ArrowLeft", False)
    until(page, 2.5)
    page.wait("parseFloat(document.getElementById('speed').textContent) > parseFloat('%s')" % before)
    for canvas in ("windscreen", "front", "left", "right", "scene"):
        assert page.evaluate(LIT % canvas) > 60, canvas
    assert page.text("#tier") == "object" and "of 100 ms" in page.text("#slack"), page.text("#figures")
    page.key("f")  # and from there otherwise
    page.wait("document.getElementById('told').textContent.includes('pale') && document.getElementById('go').textContent === 'Go'")
    hold(page, "ArrowDown", True)
    page.wait("document.getElementById('speed').textContent === '0 km/h'")
    page.evaluate("(() => { document.getElementById('seed').value = '1.5'; document.getElementById('begin').click(); })()")
    page.wait("document.getElementById('told').textContent.includes('$.seed')")  # refused: the drive is still there
    page.evaluate("document.getElementById('seed').value = '0'")
    hold(page, "ArrowDown", False)
    page.key(" ")
    page.wait("document.getElementById('go').textContent === 'Go'")
    page.click("#save")
    page.wait("!document.getElementById('command').hidden")
    words = page.text("#command").split()
    assert words[:2] == ["swerve", "run"], words
    branches = json.loads((stage.work / words[2]).read_text())["branches"]
    assert [branch["id"] for branch in branches] == ["wheel-1", "wheel-2"], branches
    done = subprocess.run([SWERVE, *words[1:], "--store", "wheel.db"], cwd=stage.work, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0 and " of 2 " in done.stdout, done.stdout
    leave(page)


def it_fits_a_narrow_screen(stage):
    for width, height in ((1400, 900), (420, 900)):
        page = stage.open("cut_in", width=width, height=height)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.getElementById('windscreen').getBoundingClientRect().width") > 250
        leave(page)


def a_kept_session_is_taken_up(stage):
    """By its name in the address, and in the field."""
    with served(stage.work, "--keep", "kept") as (server, url):
        page = Stage(stage.work, stage.browser, url).open("following")
        hold(page, "ArrowUp", True)
        until(page, 1.5)
        hold(page, "ArrowUp", False)
        name = page.evaluate("document.getElementById('session').value")
        server.kill()
        server.wait()
    stands = ("parseFloat(document.getElementById('time').textContent) >= 1.5 && document.getElementById('go').textContent === 'Go' && "
              f"document.getElementById('session').value === '{name}' && document.getElementById('scenario').value === 'following'")
    with served(stage.work, "--keep", "kept") as (_, url):
        page = stage.browser.page(f"{url}/{name}")
        page.wait(stands)
        for canvas in ("windscreen", "scene"):
            page.wait(f"({LIT % canvas}) > 60")  # drawn when its frame has come
        leave(page)
        again = Stage(stage.work, stage.browser, url).open("cut_in")
        again.evaluate(f"(() => {{ document.getElementById('session').value = '{'0' * 32}'; document.getElementById('take').click(); }})()")
        again.wait("document.getElementById('told').textContent.includes('No such file')")  # refused: the drive is still there
        again.evaluate(f"(() => {{ document.getElementById('session').value = '{name}'; document.getElementById('take').click(); }})()")
        again.wait(stands)
        hold(again, "ArrowUp", True)
        until(again, 2.5)
        hold(again, "ArrowUp", False)
        leave(again)


def who_has_no_key_is_told_so(stage):
    page = stage.browser.page(stage.url.split("#")[0])
    page.wait("document.getElementById('told').textContent.includes('open the address that it printed')")


def the_page_drives_behind_a_store_s_server(stage):
    """The same page at the server's address, with a driver's token; when its worker dies another one goes on, and when there is none that is told."""
    def secret(role, *options):
        made = subprocess.run([SWERVE, "token", "add", role, "--role", role, "--store", "jobs.db", *options], cwd=stage.work, check=True,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return made.stdout.strip()

    key = secret("driver")
    secret("worker", "--pool", "bulk", "--output", "worker.token")
    server = subprocess.Popen([SWERVE, "serve", "--store", "jobs.db", "--listen", "127.0.0.1:0"], cwd=stage.work, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    url = server.stdout.readline().strip()
    def attached():
        return subprocess.Popen([SWERVE, "session", "serve", str(ROOT / "scenarios/smoke.json"), "--relay", url, "--keep", "relayed"],
                                cwd=stage.work, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env={**os.environ, "SWERVE_TOKEN_FILE": "worker.token"})

    worker = attached()
    other = None
    try:
        address = worker.stdout.readline().split()[0]
        assert address == f"{url}/web/wheel.html", address
        page = Stage(stage.work, stage.browser, f"{address}#{key}").open("following")
        hold(page, "ArrowUp", True)
        until(page, 1.5)
        hold(page, "ArrowUp", False)
        for canvas in ("windscreen", "front", "scene"):
            assert page.evaluate(LIT % canvas) > 60, canvas
        other = attached()
        other.stdout.readline()
        worker.kill()
        page.wait("document.getElementById('told').textContent.includes('Another worker goes on')")
        hold(page, "ArrowUp", True)
        until(page, 2.5)
        hold(page, "ArrowUp", False)
        other.kill()
        page.wait("document.getElementById('told').textContent.includes('connection has ended')")
    finally:
        for process in (worker, other, server):
            if process is None:
                continue
            process.terminate()
            process.wait()


@contextlib.contextmanager
def served(work, *options):
    """A server, and the address that it printed."""
    server = subprocess.Popen([SWERVE, "session", "serve", str(ROOT / "scenarios/smoke.json"), "--listen", "127.0.0.1:0", *options],
                              cwd=work, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield server, server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def stage():
    with tempfile.TemporaryDirectory(prefix="swerve-wheel-") as work, browser.Browser() as chromium:
        with served(work) as (_, url):
            yield Stage(pathlib.Path(work), chromium, url)


browser.tests([a_key_drives_and_a_drive_is_saved, a_kept_session_is_taken_up, it_fits_a_narrow_screen, who_has_no_key_is_told_so,
               the_page_drives_behind_a_store_s_server], stage)
