#!/usr/bin/env python3
"""Figures of a report in Chromium, drawn by the CPU alone: how long it takes to open, by the clock and by processor time of
the page's main thread, which other work on the machine does not lengthen, beside an empty page; and frames a second and processor
time a frame of the player, beside the same page at rest. A benchmark, never a test.

Usage: page_speed.py REPORT.html [OUTCOME]
"""
import glob
import os
import statistics
import sys

import browser

ROUNDS = 5
FRAMES = 150
COUNT = """new Promise((done) => {
  const began = performance.now();
  let frames = 0;
  const frame = () => (++frames < %d ? requestAnimationFrame(frame) : done(performance.now() - began));
  requestAnimationFrame(frame);
})""" % FRAMES


def processor_s(chromium):
    """Of all its processes, which are one process group, those that have ended left out."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == chromium.process.pid:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def frames(chromium, page):
    """(frames a second, milliseconds of processor a frame)"""
    before = processor_s(chromium)
    wall_ms = page.evaluate(COUNT)
    return 1000 * FRAMES / wall_ms, 1000 * (processor_s(chromium) - before) / FRAMES


def opening_s(chromium, url):
    """Processor time of the page's main thread until the page has loaded."""
    page = chromium.page("about:blank")
    page.call("Performance.enable", timeDomain="threadTicks")
    page.go(url)
    metrics = {row["name"]: row["value"] for row in page.call("Performance.getMetrics")["metrics"]}
    page.call("Page.close")
    return metrics["TaskDuration"]


def main():
    url = "file://" + os.path.realpath(sys.argv[1])
    opened, rest, played = [], [], []
    spent_s = {"data:text/html,<p>empty": [], url: []}
    for _ in range(ROUNDS):
        for address, rounds in spent_s.items():
            with browser.Browser() as chromium:
                rounds.append(opening_s(chromium, address))
    with browser.Browser() as chromium:
        outcome = sys.argv[2] if len(sys.argv) > 2 else None
        for _ in range(ROUNDS):
            page = chromium.page(url)
            opened.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            outcome = outcome or page.evaluate("document.querySelector('[data-play]').dataset.play")
            page.call("Page.close")
            page = chromium.page(f"{url}#play={outcome}")
            page.wait("document.querySelector('.p-clock') && document.querySelector('.p-clock').textContent !== ''")
            rest.append(frames(chromium, page))
            page.evaluate("(() => { const s = document.querySelector('.p-controls select'); s.value = '0.25';"
                          " s.dispatchEvent(new Event('change')); })()")
            page.key(" ")
            played.append(frames(chromium, page))
            page.call("Page.close")
    print(f"{sys.argv[1]}: {os.path.getsize(sys.argv[1]) / 1e6:.2f} MB, loaded after {statistics.median(opened):.0f} ms")
    empty_s, page_s = map(statistics.median, spent_s.values())
    print(f"main thread: {page_s:.3f} s of processor time until it has loaded; an empty page {empty_s:.3f} s")
    for name, rounds in (("at rest", rest), ("playing", played)):
        fps, spent = (statistics.median(column) for column in zip(*rounds))
        print(f"{name}: {fps:.0f} frames/s, {spent:.1f} ms of processor a frame")
    print(f"outcome {outcome}, medians of {ROUNDS}, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


main()
