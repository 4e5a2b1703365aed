#!/usr/bin/env python3
"""Goal: a browser that opens a server sees its suites, slices and rollouts; what others have named is
shown as text; its alarms and frozen slices are those of `swerve agreement`; on a server with tokens the
page shows nothing of the store until a token is given, and strange pages may ask for nothing.
Method: a store whose suite and planner are named after markup, served with and without tokens; the page
in headless Chromium (browser.py), whose document is searched; requests with the headers that browsers add;
a store whose every job the teacher repeated, with its verdicts turned round.

Usage: test_dashboard.py SWERVE SOURCE_ROOT. Without Chromium it is skipped (77), but not where CI is set.
"""
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import browser

SWERVE = os.path.realpath(sys.argv[1])
HOSTILE = "<img src=x id=pwned onerror=document.title=1>"
SCENARIO = {
    "id": "cruise", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [400, 0]], "width_m": 3.5,
                                       "speed_limit_mps": 15}]},
    "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
    "slices": {"weather": "fog", "light": "day", "road": "urban"},
    "branches": [{"id": "brake", "at_tick": 5, "interventions": [{"kind": "ego_brake", "tick": 6, "decel_mps2": 4}]}],
    "horizon_s": 2}
WALL = {**SCENARIO, "id": "wall", "slices": {"weather": "rain", "light": "day", "road": "urban"}, "agents": [
    {"id": "wall", "kind": "car", "pose": {"lane": "east", "s_m": 29}}]}
WALL["branches"] = [{"id": "brake", "at_tick": 2, "interventions": [{"kind": "ego_brake", "tick": 3, "decel_mps2": 4}]}]

failures = 0


def check(condition, what):
    global failures
    print(("ok - " if condition else "not ok - ") + what, flush=True)
    failures += not condition


class Prefixed(http.server.BaseHTTPRequestHandler):
    """A proxy that has a server's paths behind /tools/swerve/, as others have, and nothing else."""
    protocol_version = "HTTP/1.0"
    port = 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        if not self.path.startswith("/tools/swerve/"):
            return self.send_error(404)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", self.path.removeprefix("/tools/swerve"), headers=dict(self.headers))
        answer = connection.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection"):
                self.send_header(name, value)
        self.end_headers()
        try:
            while piece := answer.read1(65536):
                self.wfile.write(piece)
        except OSError:
            pass
        connection.close()


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


shown = []


def opened(chromium, url, before=None):
    """A page that has asked for what its first view shows. The last one goes: each holds a connection for its
    events, of which a browser has six to a server."""
    if shown:
        shown.pop().close()
    page = chromium.page(url, before=before)
    shown.append(page)
    page.wait("document.body.dataset.ready || !document.getElementById('ask').hidden")
    page.wait("!/Counting|Counted so far|Drawing the drive/.test(document.body.innerText)")
    return page


def document_of(page):
    """Names without the places where they may go on in the next line."""
    return page.evaluate("document.documentElement.outerHTML").replace("<wbr>", "")


def render(chromium, url):
    """The document that the page has made of itself, without complaints."""
    page = opened(chromium, url)
    check(page.problems == [], f"{url.split('/', 3)[3] or '/'}: nothing goes wrong {page.problems}")
    return document_of(page)


def submit(server, suite, jobs, pool="nobody", **headers):
    """Jobs that nobody runs, of scenarios and a planner with a strange name."""
    spec = {"key": "", "suite_id": "", "scenario_id": HOSTILE, "scenario_hash": "", "planner": HOSTILE, "planner_hash": "",
            "pool": pool, "tier": "object", "model_hash": "", "sampler": "", "backend": "cpu", "revision": "", "seed": 0,
            "priority": 0, "rollout_count": 1, "attempts_max": 1, "parent_job_id": 0, "prefix_key": "", "audit_key": ""}
    body = json.dumps({"weight": 1, "common": spec, "jobs": [{"key": f"{suite}-{i}"[:64]} for i in range(jobs)]})
    code, _, text = server.ask("/v1/suites/" + urllib.parse.quote(suite, safe="") + "/jobs", "POST", body, **headers)
    if code != 200:
        check(False, f"suite {suite} is taken ({code} {text[:200]})")


def headers_and_origins(server):
    code, headers, text = server.ask("/")
    policy = headers.get("Content-Security-Policy", "")
    check(code == 200 and "text/html" in headers["Content-Type"], "the page is there")
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        check(part in policy, f"the policy says {part}")
    check("unsafe" not in policy, "the policy allows nothing inline")
    check(headers.get("X-Content-Type-Options") == "nosniff", "types are not guessed")
    check(re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", text) is None, "no script or style is inline")
    check(re.findall(r'(?:src|href)="(?!web/|#|data:,)', text) == [], "nothing comes from another host, and no link is absolute")
    for name in re.findall(r'"web/([\w.]+)', text):
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


def pages(chromium, server, suite):
    seen = render(chromium, server.url + "/")
    check(HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in seen, "a suite named after markup is shown as text")
    check('id="pwned"' not in seen and "<title>Swerve</title>" in seen, "and does nothing")
    check("&lt;i&gt;pool" in seen, "a pool's name likewise")
    check(suite in seen and "100%" in seen and "builtin:reference" in seen and "<time" in seen,
          "the suite that was run is shown, whole, with planner and date")
    seen = render(chromium, f"{server.url}/#/suite/{suite}")
    check("weather: fog" in seen and "road: urban" in seen, "a suite shows its slices")
    rows = re.findall(r'href="#/outcome/(\d+)"', seen)
    check(len(rows) == 2, f"and its two rollouts ({rows})")
    seen = render(chromium, f"{server.url}/#/suite/{suite}?branches=no")
    check(len(re.findall(r'href="#/outcome/(\d+)"', seen)) == 1, "or its main line alone")
    seen = render(chromium, f"{server.url}/#/suite/{suite}?slice=weather:rain")
    check("No rollout fits" in seen, "a slice without rollouts is empty")
    outcome = json.loads(server.ask("/v1/outcomes?limit=1")[2])["outcomes"][0]
    page = opened(chromium, f"{server.url}/#/outcome/{outcome['id']}")
    page.wait("document.querySelector('#stage canvas') !== null")
    check(page.problems == [], f"a rollout: nothing goes wrong {page.problems}")
    seen = document_of(page)
    check(outcome["trace_hash"] in seen and f"swerve replay {outcome['id']}" in seen, "a rollout shows hash and commands")
    check("<canvas" in seen and "over it" in seen, "and plays it")
    seen = document_of(opened(chromium, f"{server.url}/#/suite/nothing"))
    check("the store has no suite" in seen, "a suite that is not there is said to be so")


# Words that stand in two lines: pieces of text without a space or a place to break.
BROKEN = """(() => { const broken = []; const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) for (const piece of walk.currentNode.data.matchAll(/\\S+/g)) {
    const range = document.createRange();
    range.setStart(walk.currentNode, piece.index); range.setEnd(walk.currentNode, piece.index + piece[0].length);
    const lines = new Set([...range.getClientRects()].map((r) => Math.round(r.top)));
    if (!/[-/]/.test(piece[0]) && lines.size > 1) broken.push(piece[0]); } return broken; })()"""


def failures_first(chromium, server, suite):
    page = opened(chromium, f"{server.url}/#/suite/{suite}")
    page.wait("document.querySelector('#failures') !== null")
    titles = page.evaluate("[...document.querySelectorAll('h2')].map((h) => h.innerText)")
    check(titles[:3] == ["Failures", "Slices", "Rollouts"], f"failures first, slices above rollouts {titles}")
    check(page.text("#conclusion") == "1 of 2 main lines failed.", f"a conclusion in a sentence ({page.text('#conclusion')!r})")
    failed = page.evaluate("[...document.querySelectorAll('#failures + .card td.suite')].map((cell) => cell.innerText)")
    check(failed == ["wall"], f"of main lines that failed, no branch ({failed})")
    tiles = page.evaluate("[...document.querySelectorAll('.tile')].map((tile) => tile.innerText)")
    check(not any("$" in tile for tile in tiles), f"less than a cent is not in the headline {tiles}")
    slices = page.evaluate("[...document.querySelectorAll('h2')].find((h) => h.innerText === 'Slices').nextSibling.innerText")
    check("All of them: light: day, road: urban" in slices and slices.index("weather: rain") < slices.index("1 slice passes in full"),
          f"a slice that is all stands in a line, the weak ones in the table ({slices!r})")
    for width in (1400, 420):
        page.size(width, 900)
        check(page.evaluate(BROKEN) == [], f"no word is broken at {width} pixels ({page.evaluate(BROKEN)})")
        check(page.evaluate("document.documentElement.scrollWidth") <= width, f"and all fits into {width} pixels")
    page.evaluate("location.hash += '?verdict=fail'")
    page.wait("document.querySelector('h2').innerText === 'Rollouts'")
    check(True, "who filters sees the rollouts first")


def trend_of_runs(chromium, server, suite, walls):
    page = opened(chromium, f"{server.url}/#/trend?tag=nightly")
    page.wait("document.querySelector('svg.trend') !== null")
    points = page.evaluate("[...document.querySelectorAll('svg.trend a')].map((a) => [a.getAttribute('href'), a.textContent])")
    check([href.split("/")[-1] for href, _ in points] == [walls, suite], f"a point for each run, oldest first ({points})")
    check(": 50.0%" in points[0][1] and ": 100.0%" in points[1][1], f"at their rates ({points})")
    heights = page.evaluate("[...document.querySelectorAll('svg.trend circle')].map((c) => Number(c.getAttribute('cy')))")
    check(heights[0] > heights[1], f"the better one above ({heights})")
    rows = page.evaluate("[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
    check(len(rows) == 2 and "+50.0" in rows[0] and HOSTILE in rows[0], f"a table says how far it moved, and notes as text ({rows})")
    check(page.problems == [], f"nothing goes wrong {page.problems}")
    for width in (1400, 420):
        page.size(width, 900)
        check(page.evaluate("document.documentElement.scrollWidth") <= width, f"the trend fits into {width} pixels")
    names = page.evaluate("[...document.querySelectorAll('.legend span')].map((line) => line.innerText)")
    check([name.strip("\u25cf ") for name in names] == ["object"], f"runs of one name, planner, rig and world are one line ({names})")
    seen = document_of(opened(chromium, f"{server.url}/#/trend?name=nobody"))
    check("No run with a rate is meant" in seen, "a name without runs is said to have none")


def another_planner_is_another_line(chromium, work, store):
    subprocess.run([SWERVE, "run", str(work / "cruise.json"), "--world", "object", "--store", store, "--name", "night", "--tag", "nightly",
                    "--planner", "builtin:maintain"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = Server(store)
    page = opened(chromium, f"{server.url}/#/trend?tag=nightly")
    page.wait("document.querySelector('svg.trend') !== null")
    names = page.evaluate("[...document.querySelectorAll('.legend span')].map((line) => line.innerText)")
    check(len(names) == 2 and "builtin:maintain, object" in names[1], f"which is named ({names})")
    lines = page.evaluate("[...document.querySelectorAll('svg.trend polyline')].map((l) => l.getAttribute('points').split(' ').length)")
    check(lines == [2, 1], f"and joined with no other ({lines})")
    check(server.stop() == 0, "the server ends in order")


def keys_and_news(chromium, server, suite):
    page = opened(chromium, server.url + "/")
    page.wait("document.getElementById('live').className === 'on'")
    submit(server, "newcomer", 1)
    page.wait("document.querySelector('main').innerText.includes('newcomer')")
    check(True, "a suite that is submitted appears by itself")
    submit(server, "many", 60)
    page = opened(chromium, f"{server.url}/#/suite/{suite}")
    page.key("/")
    check(page.evaluate("document.activeElement.name") == "verdict", "the key / leads to the filter")
    page.evaluate("document.activeElement.blur()")
    page.key("u")
    page.wait("document.querySelector('h2') && document.querySelector('h2').textContent === 'Suites'")
    check(page.evaluate("location.hash") == "#/", "the key u leads upwards")
    for number in range(30):
        submit(server, f"more-{number:02}", 1)
    page = opened(chromium, server.url + "/")
    newest = "document.querySelector('td.suite').textContent === 'more-29'"
    page.wait("document.querySelectorAll('td.suite').length === 25 && " + newest)
    page.key("n")
    page.wait("location.hash.includes('after=') && document.querySelectorAll('td.suite').length < 25")
    check(not page.evaluate(newest), "the key n leads to the next page")
    page.key("p")
    page.wait(newest)
    check(page.problems == [], f"and p back {page.problems}")
    page.size(420, 900)
    check(page.evaluate("document.documentElement.scrollWidth") <= 420, "a phone need not scroll sideways")
    cell = "getComputedStyle(document.querySelector('table.stack td')).display"
    check(page.evaluate(cell) != "table-cell", "a phone stacks the cells of a row")
    page.size(718, 1000)
    page.call("Emulation.setEmulatedMedia", media="print")
    check(page.evaluate(cell) == "table-cell", "on paper rows stay rows")
    wide = page.evaluate("document.documentElement.scrollWidth")
    check(wide <= 718, f"and fit a sheet of A4 ({wide} px)")
    page.call("Emulation.setEmulatedMedia", media="screen")


HELD = """
window.held = null;
const asked = window.fetch;
window.fetch = async (path, ...rest) => {
  const answer = await asked(path, ...rest);
  if (window.hold && path === 'v1/suites/late') {
    window.hold = false;
    await new Promise((done) => { window.held = done; });
  }
  return answer;
};
"""


def news_while_a_view_is_renewed(chromium, server):
    """Jobs are added to a suite while the page has an older answer in its hands."""
    submit(server, "late", 1)
    page = opened(chromium, f"{server.url}/#/suite/late", before=HELD)
    page.wait("document.getElementById('live').className === 'on'")
    page.evaluate("window.hold = true")
    submit(server, "late", 2)
    page.wait("window.held !== null")
    submit(server, "late", 3)
    page.wait("import('/web/dash.js').then((m) => m.page.news?.suites.find((s) => s.suite === 'late')?.jobs.queued === 3)")
    page.evaluate("window.held()")
    page.wait("document.querySelector('main').innerText.includes('0 / 3')")
    check(True, "news that come while a view is renewed renew it again")


def with_tokens(chromium, work, store, suite):
    tokens = {}
    for role in ("read", "worker", "submit"):
        pool = ["--pool", "bulk"] if role == "worker" else []
        done = subprocess.run([SWERVE, "token", "add", role, "--role", role, "--store", store, *pool, "--output",
                               str(work / role)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        check(done.returncode == 0, f"a token with the role {role}: {done.stdout.strip()[:80]}")
        tokens[role] = (work / role).read_text(encoding="utf-8").strip()
    server = Server(store)
    page = opened(chromium, f"{server.url}/#/suite/{suite}")
    check(not page.evaluate("document.getElementById('ask').hidden"), "without a token the page asks for one")
    seen = document_of(page)
    check(seen.count(suite) == 0 and "weather" not in seen, "and shows nothing of the store")
    for role, wanted in (("worker", "which may not"), ("read", "weather: fog")):
        page = opened(chromium, f"{server.url}/#/suite/{suite}")  # a tab knows nothing of another's token
        page.evaluate("document.getElementById('token').focus()")
        page.type(tokens[role])
        page.click("#ask button")
        page.wait(f"document.body.innerText.includes({json.dumps(wanted)})")
        check(True, f"with a token of the role {role}: {wanted}")
        check(tokens[role] not in document_of(page) + page.evaluate("location.href + document.cookie"),
              "the token is in no document, address or cookie")
    page.click("#leave")
    page.wait("!document.getElementById('ask').hidden && !document.body.innerText.includes('weather: fog')")
    check(page.evaluate("sessionStorage.length") == 0, "a token that is forgotten is gone, and the data with it")
    for path in ("/v1/overview", "/v1/workers", "/v1/agreement", "/v1/model-events", f"/v1/suites/{suite}/slices", "/v1/outcomes"):
        check(server.ask(path)[0] == 401, f"{path} without a token: 401")
        check(server.ask(path, token=tokens["worker"])[0] == 403, f"{path} with a worker's token: 403")
        check(server.ask(path, token=tokens["read"])[0] == 200, f"{path} with a reader's token: 200")
    page = opened(chromium, f"{server.url}/#/suite/{suite}")
    page.evaluate("document.getElementById('token').focus()")
    page.type(tokens["read"])
    page.click("#ask button")
    page.wait("document.body.innerText.includes('weather: fog')")
    page.wait("document.getElementById('live').textContent === 'live'")
    subprocess.run([SWERVE, "token", "revoke", "read", "--store", store], check=True, stdout=subprocess.DEVNULL)
    submit(server, "news", 1, token=tokens["submit"])  # at which the server sees that the token is none any more
    page.wait("!document.getElementById('ask').hidden && !document.body.innerText.includes('weather: fog')")
    check(True, "a token that is revoked while the page follows the store takes the data with it")
    check(server.stop() == 0, "the server ends in order")


def audited_store(work):
    """A tick of six scenarios, each repeated by the teacher, which then fails what the student passes."""
    scenario = {**SCENARIO, "id": "tick", "question": "perception", "horizon_s": 0.1, "branches": []}
    (work / "tick.json").write_text(json.dumps(scenario), encoding="utf-8")
    scenarios = [{"file": "tick.json", "id": f"tick{i}"} for i in range(6)]
    (work / "ticks.json").write_text(json.dumps({"id": "ticks", "scenarios": scenarios}), encoding="utf-8")
    (work / "all.json").write_text('{"rate": 1.0, "safety_critical_rate": 1.0}', encoding="utf-8")
    store = str(work / "audited.db")
    subprocess.run([SWERVE, "run", str(work / "ticks.json"), "--store", store, "--workers", "1", "--audit",
                    str(work / "all.json"), "--json"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with sqlite3.connect(store) as db:
        db.execute("UPDATE outcomes SET verdict = 0")
        db.execute("UPDATE outcomes SET verdict = 1 WHERE context IN (SELECT id FROM contexts WHERE tier = 3)")
    db.close()
    return store


def agreement_of(server, limit):
    """All rows of the API, page by page, once they have every outcome; and the last page."""
    rows, after = [], 0
    while True:
        data = json.loads(server.ask(f"/v1/agreement?after={after}&limit={limit}")[2])
        if not data["whole"]:
            continue  # each question reads on
        rows += data["rows"]
        if "next" not in data:
            return rows, data
        after = data["next"]


def keep_a_model(server):
    """A version of a model with an event whose reason is markup."""
    weights = "no weights"
    name = hashlib.sha256(weights.encode()).hexdigest()
    codes = [server.ask("/v1/artifacts/" + name, "PUT", weights)[0]]
    model = {"name": "s1", "hash": name, "health_hash": "", "tier": "student", "precision": "bf16", "sampler": "euler2/bf16",
             "agents_ticks": 10, "map_ticks": 1, "none_ticks": 1, "parents": "", "data_note": "", "state": "candidate"}
    codes.append(server.ask("/v1/models/s1", "PUT", json.dumps(model))[0])
    event = {"model": "s1", "kind": "moved", "from_state": "candidate", "to_state": "shadow", "evidence": HOSTILE}
    codes.append(server.ask("/v1/models/s1/events", "POST", json.dumps(event))[0])
    check(codes == [200, 200, 200], f"a model is kept ({codes})")


def trust(chromium, work):
    os.environ.setdefault("SWERVE_MODELS", str(pathlib.Path(sys.argv[2]).resolve() / "engine" / "models"))
    store = audited_store(work)
    said = json.loads(subprocess.run([SWERVE, "agreement", "--store", store, "--json"], check=True, text=True,
                                     stdout=subprocess.PIPE).stdout)
    expected = said["rows"]
    server = Server(store)
    for limit in (1, 100):
        rows, last = agreement_of(server, limit)
        text = [sorted(json.dumps(row, sort_keys=True) for row in some) for some in (rows, expected)]
        check(all(row["monitor"]["alarm_at_ms"] for row in rows if row["frozen"]), "alarms say when they sounded")
        check(text[0] == text[1], f"in pages of {limit}, rows are those of swerve agreement ({len(rows)}, {len(expected)})")
        check(last["frozen"] == said["frozen"] == 1 and rows[0]["frozen"], "what is frozen comes first")
    by_day = json.loads(server.ask("/v1/agreement?days=1&limit=200")[2])
    today = [row["by_day"] for row in by_day["rows"]]
    told = [row["by_day"][:1] for row in json.loads(subprocess.run([SWERVE, "agreement", "--store", store, "--by-day", "--json"],
                                                    check=True, text=True, stdout=subprocess.PIPE).stdout)["rows"]]
    check(all(days and days[0]["pairs"] for days in today) and sorted(map(json.dumps, today)) == sorted(map(json.dumps, told)),
          f"rows have the newest day, as swerve agreement --by-day has it {today}")
    check(server.ask("/v1/agreement?days=91")[0] == 400, "more than 90 days are refused")
    keep_a_model(server)
    page = opened(chromium, f"{server.url}/#/trust")
    page.wait("document.body.innerText.includes('frozen to the teacher') && !document.getElementById('behind')")
    frozen = page.evaluate("[...document.querySelectorAll('td b.bad')].find((b) => b.innerText === 'frozen to the teacher')"
                           ".closest('tr').innerText")
    check("all" in frozen and "trend after 6 jobs" in frozen, f"the slice that is frozen, by which alarm ({frozen!r})")
    since = page.evaluate("document.querySelector('td a[href^=\"#/outcome/\"]').hash").split("/")[-1]
    at = json.loads(server.ask("/v1/outcomes?outcome=" + since)[2])["outcomes"][0]
    check(at["audit_of"] > 0 and at["tier"] == "teacher", "since which rollout: an audit's")
    page.evaluate("[...document.querySelectorAll('button')].find((b) => b.innerText === 'By day').click()")
    page.wait("document.querySelector('#days td b.bad')?.innerText === '6'")
    check(page.evaluate("document.querySelector('#days td').innerText") == today[0][0]["day"], "agreement of a slice by day")
    page.wait("document.body.innerText.includes('candidate \u2192 shadow')")
    seen = document_of(page)
    check('id="pwned"' not in seen and "&lt;img" in seen, "events of models, with their reasons as text")
    page.size(420, 900)
    check(page.evaluate("document.documentElement.scrollWidth") <= 420, "a phone need not scroll sideways")
    check(page.problems == [], f"nothing goes wrong {page.problems}")
    page.size(1400, 900)
    page.evaluate("location.hash = '#/'")
    page.wait("document.querySelector('.tile a[href=\"#/trust\"]')?.innerText === '1'")
    check(True, "the first page says how many slices are frozen")
    model = "a" * 64 + ":euler2/bf16"
    for weather in ("fog", "snow"):
        subprocess.run([SWERVE, "trust", "freeze", model, "--slice", "weather=" + weather, "--teacher", "b" * 64 + ":euler2/bf16",
                        "--evidence", "by hand", "--force", "--store", store], check=True, stdout=subprocess.DEVNULL)
    page = opened(chromium, f"{server.url}/")
    page.wait("document.querySelector('.tile a[href=\"#/trust\"]')?.innerText === '2'")
    page.evaluate("location.hash = '#/trust'")
    page.wait("document.querySelectorAll('#freezes tbody tr').length === 2")
    check(True, "freezes by hand are counted on the first page, and listed")
    narrow = page.evaluate("Math.min(...[...document.querySelectorAll('td.words')].map((cell) => cell.offsetWidth))")
    check(narrow >= 84, f"a column of words is wider than a letter ({narrow} pixels)")
    check(server.stop() == 0, "the server ends in order")


def behind_a_prefix(chromium, server, suite):
    Prefixed.port = server.port
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prefixed)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{proxy.server_port}/tools/swerve/"
    check("#/suite/" in render(chromium, url), "the page shows its suites behind a prefix")
    check("cruise" in render(chromium, url + "#/suite/" + suite), "and their rollouts")
    shown.pop().close()
    proxy.shutdown()


def main():
    if browser.available() is None:
        print("chromium is not installed (scripts/setup test)", file=sys.stderr)
        sys.exit(1 if os.environ.get("CI") else 77)
    with tempfile.TemporaryDirectory(prefix="swerve-dashboard-") as directory, browser.Browser() as chromium:
        work = pathlib.Path(directory)
        store = str(work / "jobs.db")
        (work / "cruise.json").write_text(json.dumps(SCENARIO), encoding="utf-8")
        (work / "wall.json").write_text(json.dumps(WALL), encoding="utf-8")
        (work / "walls.json").write_text(json.dumps({"id": "walls", "scenarios": [{"file": "wall.json"}, {
            "file": "cruise.json", "id": "cruise"}]}), encoding="utf-8")
        for name, note in (("walls.json", "as it was"), ("cruise.json", HOSTILE)):
            subprocess.run([SWERVE, "run", str(work / name), "--world", "object", "--store", store, "--name", "night", "--tag", "nightly", "--note", note],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = Server(store)
        suite, walls = json.loads(server.ask("/v1/suites")[2])["suites"]
        headers_and_origins(server)
        submit(server, HOSTILE, 1, "<i>pool</i>")
        pages(chromium, server, suite)
        failures_first(chromium, server, walls)
        trend_of_runs(chromium, server, suite, walls)
        keys_and_news(chromium, server, suite)
        news_while_a_view_is_renewed(chromium, server)
        behind_a_prefix(chromium, server, suite)
        check(server.stop() == 0, "the server ends in order")
        another_planner_is_another_line(chromium, work, store)
        with_tokens(chromium, work, store, suite)
        trust(chromium, work)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
