"""A real browser for tests of pages: Debian's Chromium, headless, driven over the DevTools protocol.

The protocol runs over two pipes (--remote-debugging-pipe), so this needs no package beyond Python's
library and opens no port. Everything is synchronous: `evaluate` runs JavaScript in the page and returns
its value (promises are awaited), `wait` polls an expression until it holds, by the page's own answers and
never by a guessed pause. Errors of the page's scripts and refusals of its policy are kept in `problems`.

    with Browser() as browser:
        page = browser.page("file:///tmp/report.html", width=420, height=900)
        page.wait("document.querySelectorAll('#rollouts tbody tr').length > 0")
        page.click(".play")
        page.key(" ")
        assert page.evaluate("document.title") == "Swerve: demo" and not page.problems
        page.screenshot("page.png")

`available()` says whether there is a browser; tests() runs test functions and prints TAP, and skips them
all where there is none, except in CI (the variable CI is set), where a missing browser is a failure.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import tap  # noqa: E402  (of the tests of the command line)

ANSWER_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")


def available():
    """The browser's path, None: there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One Chromium with a profile of its own; pages are opened in it and it takes them with it."""

    def __init__(self, *flags):
        self.profile = tempfile.mkdtemp(prefix="swerve-browser-")
        out_read, self.send_fd = os.pipe()
        self.receive_fd, in_write = os.pipe()

        def connect():  # the browser reads from 3 and writes to 4
            high = (os.dup(out_read), os.dup(in_write))
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [available(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-extensions", "--hide-scrollbars",
             f"--user-data-dir={self.profile}", "--remote-debugging-pipe", *flags, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=connect, start_new_session=True)
        os.close(out_read)
        os.close(in_write)
        self.buffer = b""
        self.number = 0
        self.pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.send_fd)
        os.close(self.receive_fd)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline, what):
        """The next message until a time, which is told to the page that it is of; what: is waited for."""
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.receive_fd], [], [], left)[0]:
                raise TimeoutError(f"{what}: not within {ANSWER_S} s")
            block = os.read(self.receive_fd, 1 << 20)
            if not block:
                raise EOFError("the browser ended")
            self.buffer += block
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        page = self.pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.notice(message["method"], message["params"])
        return message

    def call(self, method, session=None, **params):
        """One command of the protocol and its result."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if session:
            command["sessionId"] = session
        os.write(self.send_fd, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_S
        while True:
            message = self.receive(deadline, f"an answer to {method} {str(params)[:200]}")
            if message.get("id") == command["id"]:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def page(self, url, width=1400, height=900, dark=False, before=None):
        """Opens an address and returns when it has loaded; before: JavaScript that runs ahead of the page's."""
        return Page(self, url, width, height, dark, before)


class Page:
    """A page of a browser."""

    def __init__(self, browser, url, width, height, dark, before):
        self.browser = browser
        self.problems = []
        self.loaded = False
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        if dark:
            self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        if before:
            self.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        self.go(url)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def notice(self, method, params):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])

    def go(self, url):
        """Loads an address."""
        self.loaded = False
        failure = self.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise RuntimeError(f"{url}: {failure}")
        deadline = time.monotonic() + ANSWER_S
        while not self.loaded:
            self.browser.receive(deadline, f"{url} is loaded")

    def close(self):
        """Ends the page and its connections."""
        del self.browser.pages[self.session]
        self.browser.call("Target.closeTarget", targetId=self.target)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)

    def evaluate(self, expression):
        """The value of an expression (as JSON has it); a promise is awaited, an exception raised here."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait(self, expression):
        """Until the expression holds, asked at the page's own pace; its value. What it asks about may not be
        there yet: an exception is "not yet"."""
        deadline = time.monotonic() + ANSWER_S
        last = None
        while time.monotonic() < deadline:
            try:
                last = self.evaluate(f"new Promise((done) => setTimeout(done, 10)).then(() => {expression})")
                if last:
                    return last
            except RuntimeError as problem:
                last = problem
        raise TimeoutError(f"never came true: {expression}; at last {last!r}; {self.problems}")

    def click(self, selector):
        """A click of the mouse in the middle of the first element that fits, scrolled into view."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        self.mouse("mousePressed", *place)
        self.mouse("mouseReleased", *place)

    def mouse(self, kind, x, y):
        """kind: mousePressed, mouseMoved, mouseReleased."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=1,
                  button="left", buttons=0 if kind == "mouseReleased" else 1)

    def key(self, key, shift=False):
        """A key is pressed and let go."""
        codes = {" ": 32, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Escape": 27, "Enter": 13, "Tab": 9}
        what = {"key": key, "code": key, "modifiers": 8 if shift else 0,
                "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        if len(key) == 1:
            what["text"] = key
        self.call("Input.dispatchKeyEvent", type="keyDown", **what)
        what.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **what)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def text(self, selector):
        """Text of an element; None: there is none."""
        return self.evaluate(f"(document.querySelector({json.dumps(selector)}) || {{}}).innerText ?? null")

    def screenshot(self, path):
        """Picture of the window, as PNG."""
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def tests(functions, setup=None):
    """Runs them as TAP, each with what setup() yielded (a generator that ends after the tests), and ends the process."""
    if not available():
        if os.environ.get("CI"):
            sys.exit("Bail out! no chromium: scripts/setup test installs it")
        print("1..0 # SKIP no chromium: scripts/setup test installs it")
        sys.exit(0)
    stage = setup() if setup else iter([None])
    failed = tap.run(functions, next(stage))
    next(stage, None)
    sys.exit(failed > 0)
