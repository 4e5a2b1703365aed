#!/usr/bin/env python3
"""Goal: the report's page and its player work in a real browser: every embedded rollout plays, the figures
that the player measures are those of the outcomes, keys, buttons and scrubbing move one time, two rollouts
lie over one another, texts from outside stay texts, the filter reaches every table, and nothing overflows a
narrow screen.
Method: a suite with branches, contacts and hostile names is driven; its report is opened in Chromium and used.

Usage: test_player.py SWERVE SOURCE_ROOT
"""
import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import browser

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
HOSTILE = "<img src=x onerror=\"document.title='hurt'\">"
SUITE = {"id": "pages", "scenarios": [{"file": "hit.json"}, {"file": "bend.json"}, {"file": "lights.json"}]}
ROAD = {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]}
RIG = {"id": "pair", "cameras": [{"id": "wide", "width": 320, "height": 180, "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5}, "lens": {"fx": 160}},
                                {"id": "back", "width": 90, "height": 120, "pose": {"x_m": -1, "y_m": 0, "z_m": 1.5, "yaw_rad": 3.1}, "lens": {"fx": 60}}]}
SCENARIOS = {
    "hit": {"id": "hit", "title": HOSTILE, "map": ROAD, "rig": RIG,
            "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
            "agents": [{"id": "a_car_that_somebody_has_parked", "kind": "car", "pose": {"lane": "east", "s_m": 80}, "behaviour": "static"}],
            "branches": [{"id": "brake", "at_tick": 10,
                          "interventions": [{"kind": "ego_brake", "tick": 10, "decel_mps2": 5}]}],
            "horizon_s": 6},
    "bend": {"id": "bend", "title": "a bend", "horizon_s": 5,
             "map": {"lanes": [{"id": "a", "centre_line": [[0, 0], [60, 0], [90, 12], [400, 200]], "width_m": 3.5,
                                "speed_limit_mps": 15}]},
             "ego": {"pose": {"lane": "a", "s_m": 10}, "speed_mps": 8, "route": ["a"]},
             "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "a", "s_m": 40}, "speed_mps": 9,
                         "behaviour": "idm"}]},
    "lights": {"id": "lights", "title": "red, then green", "horizon_s": 4,
               "map": {"lanes": [{"id": "in", "centre_line": [[0, 0], [60, 0]], "width_m": 3.5, "successors": ["out"]},
                                 {"id": "out", "centre_line": [[60, 0], [400, 0]], "width_m": 3.5}],
                       "signals": [{"id": "s", "lanes": ["in"], "repeats": False,
                                    "phases": [{"light": "red", "duration_s": 2}, {"light": "green", "duration_s": 9}]}]},
               "ego": {"pose": {"lane": "in", "s_m": 30}, "speed_mps": 4, "route": ["in", "out"]},
               "agents": [{"id": "parked", "kind": "car", "pose": {"lane": "out", "s_m": 80}, "behaviour": "static"}]}}


class Stage:
    """A driven suite, its report, and a browser."""

    def __init__(self, work, chromium):
        self.browser = chromium
        self.report = f"file://{work}/report.html"
        shown = subprocess.run([SWERVE, "show", "--all", "--store", "a.db"], stdout=subprocess.PIPE, text=True,
                               check=True)
        self.outcomes = [json.loads(line) for line in shown.stdout.splitlines()]

    def outcome(self, scenario, branch=""):
        return next(one for one in self.outcomes if one["scenario_id"] == scenario and one["branch_id"] == branch)

    def open(self, outcome=None, **kind):
        page = self.browser.page(self.report + (f"#play={outcome['id']}" if outcome else ""), **kind)
        if outcome:
            page.wait("document.querySelector('.p-clock') && document.querySelector('.p-clock').textContent !== ''")
        return page


@contextlib.contextmanager
def served(*options):
    """The address of a server of the store that wants tokens, and one that may read."""
    subprocess.run([SWERVE, "token", "add", "reader", "--role", "read", "--store", "a.db", "--output", "reader"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    server = subprocess.Popen([SWERVE, "serve", "--store", "a.db", "--listen", "127.0.0.1:0", *options], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield server.stdout.readline().strip(), pathlib.Path("reader").read_text().strip()
    finally:
        server.terminate()
        server.wait()


def setup():
    with tempfile.TemporaryDirectory(prefix="swerve-pages-") as work:
        os.chdir(work)
        for name, scenario in SCENARIOS.items():
            pathlib.Path(name + ".json").write_text(json.dumps(scenario))
        pathlib.Path("suite.json").write_text(json.dumps(SUITE))
        made = subprocess.run([SWERVE, "run", "suite.json", "--world", "object", "--store", "a.db", "--planner",
                               "builtin:maintain", "--report", "report.html"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if made.returncode > 1:
            sys.exit(f"Bail out! {made.stdout}")
        with browser.Browser() as chromium:
            yield Stage(work, chromium)
        os.chdir("/")


def seconds(page):
    return float(page.text(".p-clock").split()[0])


def the_page_runs_clean_and_hostile_titles_are_text(stage):
    page = stage.open()
    assert page.evaluate("document.querySelectorAll('.play:not([hidden])').length") >= len(stage.outcomes)
    page.click(f"[data-play='{stage.outcome('hit')['id']}']")
    page.wait("document.querySelector('.p-head h2') && document.querySelector('.p-head h2').textContent !== ''")
    assert page.text(".p-head h2") == HOSTILE, page.text(".p-head h2")
    assert page.evaluate("document.title").startswith("Swerve") and page.problems == [], page.problems


def every_rollout_plays_with_the_figures_of_its_outcome(stage):
    page = stage.open()
    drives = page.evaluate("""(async () => {
      const found = [];
      for (const script of document.querySelectorAll("script[type='application/x-swerve-drive']")) {
        const bytes = Uint8Array.from(atob(script.textContent), (c) => c.charCodeAt(0));
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
        const drive = SwerveDrive.read(JSON.parse(await new Response(stream).text()));
        for (const rollout of drive.rollouts) {
          const track = SwerveDrive.trackOf(drive, rollout);
          found.push({outcome: rollout.outcome, count: track.count, gap: Math.min(...track.gap),
                      asked: Array.from(track.ego.action_accel, Number.isFinite).lastIndexOf(true),
                      speed: Math.max(...track.ego.speed), kinds: track.events.map((event) => event.kind)});
        }
      }
      return found;
    })()""")
    assert sorted(one["outcome"] for one in drives) == sorted(one["id"] for one in stage.outcomes), drives
    for drive in drives:
        assert drive["asked"] == drive["count"] - 2, "behind the last tick nothing is asked for"
        outcome = next(one for one in stage.outcomes if one["id"] == drive["outcome"])
        metrics = outcome["metrics"]
        # Positions are whole centimetres: a gap is right to two of them, and after a contact boxes may overlap.
        assert abs(drive["gap"] - metrics["min_distance_m"]) < 0.03, (drive, metrics["min_distance_m"])
        assert abs(drive["speed"] - metrics["speed_max_mps"]) < 0.0051, (drive, metrics["speed_max_mps"])
        assert ("contact" in drive["kinds"]) == (metrics["collision_count"] > 0), drive
        assert ("fork" in drive["kinds"]) == (outcome["scenario_id"] == "hit"), drive


def keys_and_scrubbing_move_one_time(stage):
    page = stage.open(stage.outcome("bend"))
    page.key("Home")
    assert seconds(page) == 0
    for key, shift, expected in [("ArrowRight", False, 0.1), ("ArrowRight", True, 1.1), ("ArrowLeft", False, 1.0),
                                 ("Home", False, 0.0)]:
        page.key(key, shift)
        assert abs(seconds(page) - expected) < 1e-6, (key, page.text(".p-clock"))
    page.key("End")
    end = seconds(page)
    assert end >= 4.9, end
    x, y, width = page.evaluate("(() => { const r = document.querySelector('.p-axis').getBoundingClientRect();"
                                " return [r.x, r.y + r.height / 2, r.width]; })()")
    page.mouse("mousePressed", x + width * 0.3, y)
    early = seconds(page)
    page.mouse("mouseMoved", x + width * 0.7, y)
    late = seconds(page)
    page.mouse("mouseReleased", x + width * 0.7, y)
    assert 0 < early < late < end, (early, late, end)
    page.key("Home")
    page.key("n")
    assert seconds(page) > 0, "no event to go to"


def failures_come_first_and_no_table_repeats_the_total(stage):
    page = stage.open()
    assert page.evaluate("(() => { const at = (id) => document.getElementById(id);"
                         " return (at('failures').compareDocumentPosition(at('slices')) & 4) === 4; })()")
    assert page.evaluate("[...document.querySelectorAll('.card.slice tbody')].every((body) => body.rows.length > 1)")
    assert page.evaluate("document.body.textContent.includes('Alike in all: ')")
    assert not page.evaluate("document.body.textContent.includes('<p class')")


def it_opens_before_what_was_decided(stage):
    hit = stage.outcome("hit")
    contact = hit["metrics"]["collision_tick"] * 0.1
    page = stage.open(hit)
    assert abs(seconds(page) - max(contact - 3, 0)) < 1e-6, (seconds(page), contact)
    page.evaluate("window.drawn = []; CanvasRenderingContext2D.prototype.fillText = (text) => drawn.push(text)")
    page.key("End")
    assert page.evaluate("drawn.some((text) => text.startsWith('a_car_that_somebody_has_parked  0.0 m/s'))")
    assert page.evaluate("document.querySelectorAll('.p-now').length > 0")


def it_plays_to_the_end_and_pauses(stage):
    page = stage.open(stage.outcome("bend"))
    page.evaluate("document.querySelector('.p-controls select').value = '8', "
                  "document.querySelector('.p-controls select').dispatchEvent(new Event('change'))")
    page.key(" ")
    assert page.evaluate("document.querySelector('.p-controls').textContent.includes('⏸')")
    page.wait("document.querySelector('.p-controls').textContent.includes('▶')")
    assert seconds(page) == float(page.text(".p-clock").split()[3]), page.text(".p-clock")


def the_picture_changes_with_time(stage):
    page = stage.open(stage.outcome("hit"))
    picture = "document.querySelector('.p-scene').toDataURL()"
    before = page.evaluate(picture)
    page.key("ArrowRight", True)
    assert page.evaluate(picture) != before
    page.key("ArrowLeft", True)
    assert page.evaluate(picture) == before


def stop_lines_have_the_colours_of_their_lights(stage):
    page = stage.open(stage.outcome("lights"))
    count = """((r, g, b) => {
      const canvas = document.querySelector('.p-scene');
      const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      let found = 0;
      for (let i = 0; i < data.length; i += 4) found += data[i] === r && data[i + 1] === g && data[i + 2] === b;
      return found;
    })"""
    red, green = count + "(0xd0, 0x21, 0x21)", count + "(0x1a, 0x9a, 0x4a)"
    assert page.evaluate(red) > 20 and page.evaluate(green) == 0, (page.evaluate(red), page.evaluate(green))
    page.key("End")
    assert page.evaluate(red) == 0 and page.evaluate(green) > 20, (page.evaluate(red), page.evaluate(green))


def two_rollouts_lie_over_one_another(stage):
    page = stage.open(stage.outcome("hit", "brake"))
    page.wait("document.querySelectorAll('.p-readings tr:first-child td').length === 2")
    page.key("End")
    speeds = page.evaluate("[...document.querySelectorAll('.p-readings tr:first-child td')].map((td) => parseFloat(td.textContent))")
    assert speeds[0] < 1 < speeds[1], speeds
    page.evaluate("(() => { const s = document.querySelectorAll('.p-choice select')[1]; s.value = '';"
                  " s.dispatchEvent(new Event('change')); })()")
    page.wait("document.querySelectorAll('.p-readings tr:first-child td').length === 1")
    assert page.problems == [], page.problems


def escape_closes_and_the_address_opens(stage):
    page = stage.open(stage.outcome("bend"))
    page.key("Escape")
    page.wait("document.querySelector('dialog') === null")
    assert page.evaluate("location.hash") == ""
    page.evaluate(f"location.hash = '#play={stage.outcome('hit')['id']}'")
    page.wait("document.querySelector('.p-clock') && document.querySelector('.p-clock').textContent !== ''")


def the_filter_reaches_every_table(stage):
    page = stage.open()
    page.click("#filter")
    page.type("hit brake")
    shown = "[...document.querySelectorAll('#rollouts tbody tr')].filter((row) => !row.hidden).length"
    assert page.wait(f"{shown} === 1 && {shown}") == 1
    page.evaluate("document.getElementById('filter').value = ''")
    page.type("bend")
    page.wait("document.querySelectorAll('article.card:not([hidden])').length === 0")
    assert page.evaluate("[...document.querySelectorAll('table.filtered tbody tr')].every((row) => row.hidden)")
    assert "of" in page.text("#shown")


def a_long_table_is_shown_in_parts(stage):
    """All rows are in the file, the first 200 are shown; the filter and the order reach the others."""
    pathlib.Path("long.json").write_text(json.dumps({**SCENARIOS["bend"], "id": "a_long_name_of_a_scenario", "horizon_s": 0.2}))
    subprocess.run([SWERVE, "run", "long.json", "--world", "object", "--store", "long.db", "--seeds", "230", "--report",
                    "long.html"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    page = stage.browser.page(stage.report.replace("report.html", "long.html"), width=420, height=900)
    assert page.text(".conclusion") == "No main line failed, 230 passed.", page.text(".conclusion")
    shown = "[...document.querySelectorAll('#rollouts tbody tr')].filter((row) => row.offsetHeight > 0).length"
    assert page.evaluate(shown) == 200 and page.text("#more") == "Show 30 more of 30", page.text("#more")
    last = page.evaluate("document.querySelector('#rollouts tbody tr:last-child').id")
    for _ in range(2):
        page.evaluate("document.querySelectorAll('#rollouts th')[5].click()")
    first = page.evaluate("document.querySelector('#rollouts tbody tr td:nth-child(6)').textContent")
    assert first == "230" and page.evaluate(shown) == 200, first
    page.evaluate("location.hash = '#' + document.querySelector('#rollouts tbody tr:last-child').id")
    page.wait(f"{shown} === 230")
    address = page.evaluate("location.href.split('#')[0]")
    page.go("about:blank")
    page.go(f"{address}#{last}")
    assert page.evaluate(shown) == 230, "an address leads to a row"
    page.go("about:blank")
    page.go(address)
    page.click("#more")
    assert page.evaluate(shown) == 230 and page.evaluate("document.querySelector('#more').hidden")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    right = page.evaluate("Math.max(...[...document.querySelectorAll('#rollouts tbody td')].map((c) => c.getBoundingClientRect().right))")
    assert right <= 420, f"a column ends at {right} pixels"
    assert page.problems == [], page.problems


def unpacked_chunks(data):
    """Records of an MCAP file's chunks, which are compressed with zstd."""
    zstd, at, records = ctypes.CDLL("libzstd.so.1"), 8, b""
    while at < len(data) - 8:
        size = int.from_bytes(data[at + 1:at + 9], "little")
        if data[at] == 6:
            whole = int.from_bytes(data[at + 25:at + 33], "little")
            packed = data[at + 9 + 28 + 4 + 4 + 8:at + 9 + size]
            out = ctypes.create_string_buffer(whole)
            zstd.ZSTD_decompress.restype = ctypes.c_size_t
            assert zstd.ZSTD_decompress(out, ctypes.c_size_t(whole), packed, ctypes.c_size_t(len(packed))) == whole
            records += out.raw
        at += 9 + size
    return records


def plans_and_what_was_perceived_are_drawn(stage):
    planner = f"seen+exec:python3 {ROOT / 'scripts/examples/objects.py'}"
    subprocess.run([SWERVE, "run", "hit.json", "--world", "object", "--store", "plan.db", "--planner", planner, "--nominal", "--report",
                    "plan.html"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    page = stage.browser.page(stage.report.replace("report.html", "plan.html") + "#play=1")
    page.wait("document.querySelector('.p-clock') && document.querySelector('.p-clock').textContent !== ''")
    figures = dict(page.evaluate("[...document.querySelectorAll('.p-readings tr')].map((r) => [r.children[0].innerText, r.children[1].innerText])"))
    planned, seen = figures["planned, perceived (dashed)"].split(" m, ")
    assert float(planned) > 1 and seen == "1", figures
    drawn = '''(() => { const c = document.querySelector('.p-scene'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
      const n = [0, 0]; for (let i = 0; i < d.length; i += 4) [[11, 127, 171], [154, 106, 0]].forEach((k, j) => {
        if (Math.hypot(d[i] - k[0], d[i + 1] - k[1], d[i + 2] - k[2]) < 12) n[j]++; }); return n; })()'''
    plan, perceived = page.evaluate(drawn)
    assert plan > 20 and perceived > 20, (plan, perceived)
    other = stage.open(stage.outcome("hit", "brake"))
    assert other.evaluate(drawn)[0] == 0 and "planned" not in other.text(".p-readings")
    assert page.problems == [], page.problems
    # The same in a file for Foxglove: a message of the topic each tick, whose line begins near ego.
    subprocess.run([SWERVE, "export", "1", "--store", "plan.db", "--format", "mcap", "-o", "plan.mcap"], check=True, stdout=subprocess.DEVNULL)
    data = unpacked_chunks(pathlib.Path("plan.mcap").read_bytes())
    assert data.count(b'"id":"plan"') == data.count(b"perceived 0") > 10, (data.count(b'"id":"plan"'), data.count(b"perceived 0"))


def figures_of_two_fit_beside_the_road(stage):
    for width in (1400, 420):
        page = stage.open(stage.outcome("hit", "brake"), width=width, height=900)
        page.wait("document.querySelectorAll('.p-readings tr:first-child td').length === 2")
        over = page.evaluate("document.querySelector('.p-readings').getBoundingClientRect().right - "
                             "document.querySelector('.p-side').getBoundingClientRect().right")
        assert over <= 0.5, f"{over} pixels too wide at {width}"


def nothing_overflows_a_narrow_screen(stage):
    page = stage.open(stage.outcome("hit", "brake"), width=420, height=900)
    wide = "(() => { const d = document.querySelector('dialog'); return d.scrollWidth - d.clientWidth; })()"
    assert page.evaluate(wide) <= 0, page.evaluate(wide)
    page.key("Escape")
    page.wait("document.querySelector('dialog') === null")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420, page.evaluate("document.documentElement.scrollWidth")
    laps = page.evaluate("""[...document.querySelectorAll('.strip')].flatMap((strip) => {
      const places = [...strip.querySelectorAll('figcaption')].map((one) => one.getBoundingClientRect());
      return places.slice(1).filter((place, i) => place.left < places[i].right - 0.5);
    }).length""")
    assert laps == 0, f"{laps} captions overlap"


def a_server_plays_to_those_with_a_token(stage):
    outcome = stage.outcome("hit", "brake")
    with served() as (url, token):
        page = stage.browser.page(f"{url}/#/outcome/{outcome['id']}")
        page.wait("!document.getElementById('ask').hidden")
        assert page.evaluate("document.querySelector('.p-clock') === null")
        page.problems.clear()  # that it was refused
        page.click("#token")
        page.type(token)
        page.click("#ask button")
        page.wait("document.querySelector('.p-clock') && document.querySelector('.p-clock').textContent !== ''")
        assert page.text(".p-head h2") == HOSTILE, page.text(".p-head h2")
        page.wait("document.querySelector('.p-pictures img').naturalWidth === 96")
        page.click(".p-head h2")
        page.evaluate("document.querySelector('.swerve-player').focus()")
        page.key("End")
        assert seconds(page) > 3 and page.text(".p-readings td").endswith("m/s")
        cameras = "[...document.querySelectorAll('.p-frames:not([hidden]) img')]"
        sizes = f"{cameras}.map((image) => `${{image.alt}}: ${{image.naturalWidth}} ${{image.naturalHeight}}`).join('; ')"
        page.wait(f"{sizes} === 'camera wide, 320 x 180: 320 180; camera back, 90 x 120: 90 120'")
        assert page.text(".p-frames > .p-caption").startswith("rig pair at "), page.text(".p-frames > .p-caption")
        last = page.evaluate(f"{cameras}[0].src")
        page.key("Home")
        page.wait(f"{sizes}.length > 0 && {cameras}[0].src !== {json.dumps(last)}")
        page.click(".p-frames img")
        page.wait("document.querySelector('.p-frames .p-whole img').width === 320")
        assert page.problems == [], page.problems
        page.evaluate("location.hash = '#/'")
        page.wait("document.querySelector('.swerve-player') === null")


browser.tests([the_page_runs_clean_and_hostile_titles_are_text, every_rollout_plays_with_the_figures_of_its_outcome,
               keys_and_scrubbing_move_one_time, failures_come_first_and_no_table_repeats_the_total,
               it_opens_before_what_was_decided, it_plays_to_the_end_and_pauses, the_picture_changes_with_time,
               stop_lines_have_the_colours_of_their_lights, two_rollouts_lie_over_one_another, escape_closes_and_the_address_opens, the_filter_reaches_every_table,
               a_long_table_is_shown_in_parts, plans_and_what_was_perceived_are_drawn,
               figures_of_two_fit_beside_the_road, nothing_overflows_a_narrow_screen, a_server_plays_to_those_with_a_token], setup)
