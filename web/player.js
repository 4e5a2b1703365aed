"use strict";
// The player: one rollout, or one over another, on one time axis. Builds its own elements in a container;
// needs drive.js and scene.js before it. Works under a content security policy without inline script or
// style: texts are set as text, sizes and places through the DOM.
//
//   const player = SwervePlayer.create(container, { others, frames, onclose });
//   player.show(document, outcome);            // a document "swerve-drive/1"
//   others: [{ outcome, label, load }]         // load() gives the document of another drive to lay over
//   frames: (outcome, tick) => ..              // what the cameras of its rig saw then, as a server draws it
//
// It opens three seconds before what was decided, at a scale at which ego and the other one are both large; a
// scale that is chosen stays.
//
// Keys: space plays and pauses, arrows step (with shift a second), Home and End, N and P go from event to
// event, [ and ] change the speed, + and - the scale, M the view.
const SwervePlayer = (() => {
  const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
  const TICK_S = 0.1;
  const BEFORE_TICKS = 30; // of the moment at which it opens
  const REST_MS = 250; // at a tick before its cameras are asked for
  const ROWS = [
    { name: "speed", unit: "m/s", series: [(track) => track.ego.speed], floor: 0 },
    { name: "acceleration", unit: "m/s²", series: [(track) => track.ego.accel, (track) => track.ego.action_accel], zero: true },
    { name: "steering", unit: "mrad", series: [(track) => track.ego.steer, (track) => track.ego.action_steer], zero: true, factor: 1000 },
    { name: "gap", unit: "m", series: [(track) => track.gap], floor: 0, ceiling: 60 },
    { name: "TTC", unit: "s", series: [(track) => track.ttc], floor: 0, ceiling: 3 },
  ];
  const COLOURS = ["ground", "driving", "shoulder", "cycle", "sidewalk", "drivable", "crosswalk", "surface", "marking",
    "route", "goal", "ego", "ghost", "agent", "vulnerable", "object", "outline", "guardian", "plan", "perceived", "ink", "soft", "grid",
    "second", "contact", "intervention", "fork", "dark", "conditions", "flag", "end"];

  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "text") element.textContent = value;
      else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  };

  const seconds = (tick) => `${(tick * TICK_S).toFixed(1)} s`;
  const figure = (value, digits = 1) => (Number.isFinite(value) ? value.toFixed(digits) : "–");

  const coloursOf = (root) => {
    const style = getComputedStyle(root);
    return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--p-${name}`).trim() || "#888"]));
  };

  const labelOf = (rollout) => {
    const name = rollout.branch === "" ? "main line" : rollout.branch;
    return `${name}: ${rollout.verdict ? SwerveDrive.plain(rollout.verdict) : "not judged"}` +
      `${rollout.tier ? ` (${rollout.tier})` : ""}`;
  };

  // ---- charts ----

  const bounds = (row, tracks) => {
    const factor = row.factor || 1;
    let low = row.floor === undefined ? Infinity : row.floor;
    let high = -Infinity;
    for (const track of tracks) {
      for (const series of row.series) {
        for (const value of series(track)) {
          if (!Number.isFinite(value)) continue;
          low = Math.min(low, value * factor);
          high = Math.max(high, value * factor);
        }
      }
    }
    if (row.ceiling !== undefined) high = Math.min(Math.max(high, 1), row.ceiling);
    if (row.zero) {
      low = Math.min(low, -1);
      high = Math.max(high, 1);
    }
    return high > low ? [low, high] : [low === Infinity ? 0 : low, (low === Infinity ? 0 : low) + 1];
  };

  // Place of the charts on their canvas, in pixels of the page.
  const layoutOf = (width) => {
    const narrow = width < 520; // names stand above their rows instead of beside them
    const rowHeight = narrow ? 58 : 46;
    return { left: narrow ? 6 : 116, right: width - 8, lane: narrow ? 42 : 30, rowHeight, plot: 38,
      height: 30 + ROWS.length * rowHeight + 18 };
  };

  const drawSeries = (context, values, factor, toX, toY, colour, dash) => {
    context.strokeStyle = colour;
    context.setLineDash(dash);
    context.beginPath();
    let open = false;
    values.forEach((value, t) => {
      if (!Number.isFinite(value)) { open = false; return; }
      if (open) context.lineTo(toX(t), toY(value * factor));
      else context.moveTo(toX(t), toY(value * factor));
      open = true;
    });
    context.stroke();
    context.setLineDash([]);
  };

  const drawRow = (context, row, tracks, top, layout, toX, colours) => {
    const [low, high] = bounds(row, tracks);
    const height = layout.plot;
    const toY = (value) => top + height - ((Math.min(value, high) - low) / (high - low)) * height;
    context.strokeStyle = colours.grid;
    context.strokeRect(layout.left, top, layout.right - layout.left, height);
    if (low < 0 && high > 0) {
      context.beginPath();
      context.moveTo(layout.left, toY(0));
      context.lineTo(layout.right, toY(0));
      context.stroke();
    }
    context.save();
    context.beginPath();
    context.rect(layout.left, top, layout.right - layout.left, height);
    context.clip();
    context.lineWidth = 1.5;
    tracks.slice().reverse().forEach((track) => {
      const main = track === tracks[0] ? colours.ego : colours.ghost;
      row.series.slice().reverse().forEach((series, i, all) => {
        const second = all.length > 1 && i === 0;
        drawSeries(context, series(track), row.factor || 1, toX, toY, second ? colours.second : main, second ? [3, 3] : []);
      });
    });
    context.restore();
    context.lineWidth = 1;
    context.fillStyle = colours.soft;
    const wide = layout.left > 50;
    context.textAlign = wide ? "right" : "left";
    const x = wide ? layout.left - 6 : layout.left;
    const range = wide ? "" : `  ${figure(low, 0)} to ${figure(high, high < 10 ? 1 : 0)}`;
    context.fillText(`${row.name}, ${row.unit}${range}`, x, wide ? top + height / 2 : top - 7);
    if (wide) {
      context.fillText(figure(high, high < 10 ? 1 : 0), x, top + 5);
      context.fillText(figure(low, low > -10 && low !== 0 ? 1 : 0), x, top + height - 4);
    }
  };

  const drawEvents = (context, tracks, layout, toX, colours) => {
    tracks.forEach((track, row) => {
      const y = 5 + row * 12;
      for (const event of track.events) {
        context.fillStyle = colours[event.kind] || colours.ink;
        const x = toX(event.tick);
        if (event.last > event.tick) context.fillRect(x, y + 3, Math.max(toX(event.last) - x, 2), 4);
        else {
          context.beginPath();
          context.moveTo(x, y); context.lineTo(x + 5, y + 5); context.lineTo(x, y + 10); context.lineTo(x - 5, y + 5);
          context.fill();
        }
      }
    });
  };

  const drawAxis = (context, count, layout, toX, colours) => {
    const total = (count - 1) * TICK_S;
    const room = layout.right - layout.left;
    const step = [0.5, 1, 2, 5, 10, 20, 60, 120].find((one) => (room * one) / Math.max(total, 1) > 44) || 300;
    context.fillStyle = colours.soft;
    context.textAlign = "center";
    for (let at = 0; at <= total + 1e-9; at += step) {
      context.fillText(`${at} s`, Math.min(Math.max(toX(at / TICK_S), layout.left + 8), layout.right - 8), layout.height - 7);
    }
  };

  const drawCharts = (canvas, tracks, count, ratio, colours) => {
    const context = canvas.getContext("2d");
    const layout = layoutOf(canvas.width / ratio);
    const toX = (tick) => layout.left + (tick / Math.max(count - 1, 1)) * (layout.right - layout.left);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineWidth = 1;
    drawEvents(context, tracks, layout, toX, colours);
    ROWS.forEach((row, i) => drawRow(context, row, tracks, layout.lane + i * layout.rowHeight, layout, toX, colours));
    drawAxis(context, count, layout, toX, colours);
  };

  // ---- the player ----

  class Player {
    constructor(container, options) {
      this.options = options || {};
      this.root = container;
      this.at = 0;
      this.speed = 1;
      this.scale = 7;
      this.zoomed = false; // by whoever looks
      this.follow = true;
      this.playing = false;
      this.tracks = [];
      this.scenes = new Map();
      this.build();
      this.watch();
    }

    build() {
      const button = (text, label, action) =>
        make("button", { type: "button", text, title: label, "aria-label": label, onclick: action });
      this.title = make("h2", {});
      this.words = make("p", { class: "p-words" });
      this.first = make("select", { "aria-label": "rollout", onchange: () => this.choose() });
      this.second = make("select", { "aria-label": "laid over", onchange: () => this.choose() });
      this.canvas = make("canvas", { class: "p-scene", role: "img", "aria-label": "the road from above" });
      this.front = make("img", { alt: "front camera", hidden: true });
      this.bev = make("img", { alt: "bird's-eye view, generated", class: "p-bev", hidden: true });
      this.caption = make("p", { class: "p-caption" });
      this.seen = make("div", { class: "p-frames", hidden: true });
      this.readings = make("table", { class: "p-readings" });
      this.list = make("ol", { class: "p-events" });
      this.charts = make("canvas", { class: "p-charts" });
      this.cursor = make("div", { class: "p-cursor" });
      this.axis = make("div", { class: "p-axis" }, this.charts, this.cursor);
      this.slider = make("input", { type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": "time",
        oninput: () => this.seek(Number(this.slider.value)) });
      this.playButton = button("▶", "play (space)", () => this.toggle());
      this.clock = make("output", { class: "p-clock" });
      this.speeds = make("select", { "aria-label": "speed", onchange: () => { this.speed = Number(this.speeds.value); } },
        ...SPEEDS.map((speed) => make("option", { value: speed, text: `${speed}×`, selected: speed === 1 })));
      this.viewButton = button("whole drive", "follow ego or see the whole drive (M)", () => this.turnView());
      this.close = this.options.onclose
        ? button("✕", "close (Escape)", () => { this.pause(); this.options.onclose(); }) : "";
      this.root.classList.add("swerve-player");
      this.root.replaceChildren(
        make("div", { class: "p-head" }, make("div", {}, this.title, this.words), this.close),
        make("div", { class: "p-choice" }, make("label", {}, make("span", { class: "p-key p-key-first" }), this.first),
          make("label", {}, make("span", { class: "p-key p-key-second" }), make("span", { text: "over it" }), this.second)),
        make("div", { class: "p-body" }, this.canvas,
          make("div", { class: "p-side" }, make("div", { class: "p-pictures" }, this.front, this.bev), this.caption,
            this.readings, this.list)),
        make("div", { class: "p-controls" }, button("⇤", "to the start (Home)", () => this.seek(0)),
          button("◂", "a tick back (←)", () => this.step(-1)), this.playButton,
          button("▸", "a tick on (→)", () => this.step(1)), this.clock, this.speeds,
          button("−", "smaller (-)", () => this.zoom(0.8)), button("+", "larger (+)", () => this.zoom(1.25)),
          this.viewButton),
        this.slider, this.axis, this.seen);
      this.root.tabIndex = -1;
    }

    watch() {
      this.root.addEventListener("keydown", (event) => this.key(event));
      const scrub = (event) => {
        const layout = layoutOf(this.axis.clientWidth);
        const x = event.clientX - this.axis.getBoundingClientRect().left;
        this.seek(((x - layout.left) / (layout.right - layout.left)) * (this.count() - 1));
      };
      this.axis.addEventListener("pointerdown", (event) => {
        this.axis.setPointerCapture(event.pointerId);
        this.pause();
        scrub(event);
      });
      this.axis.addEventListener("pointermove", (event) => {
        if (this.axis.hasPointerCapture(event.pointerId)) scrub(event);
      });
      this.canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
      }, { passive: false });
      this.resizing = new ResizeObserver(() => this.resize());
      this.resizing.observe(this.root);
      this.dark = matchMedia("(prefers-color-scheme: dark)");
      this.repaint = () => this.resize();
      this.dark.addEventListener("change", this.repaint);
      for (const name of ["beforeprint", "afterprint"]) window.addEventListener(name, this.repaint);
    }

    destroy() {
      this.pause();
      this.forgetFrames();
      this.resizing.disconnect();
      this.dark.removeEventListener("change", this.repaint);
      for (const name of ["beforeprint", "afterprint"]) window.removeEventListener(name, this.repaint);
      this.root.replaceChildren();
    }

    // ---- what is shown ----

    show(packed, outcome) {
      this.pause();
      const drive = SwerveDrive.read(packed);
      this.drive = drive;
      this.scene = SwerveScene.create(drive);
      this.others = (this.options.others || []).filter((other) => !drive.rollouts.some((one) => one.outcome === other.outcome));
      const chosen = SwerveDrive.find(drive, outcome);
      const own = drive.rollouts.map((one) => [String(one.rollout), labelOf(one)]);
      const fill = (select, rows, value) => {
        select.replaceChildren(...rows.map(([key, text]) => make("option", { value: key, text })));
        select.value = value;
      };
      fill(this.first, own, String(chosen.rollout));
      fill(this.second, [["", "nothing"], ...own, ...this.others.map((other, i) => [`other ${i}`, other.label])],
        chosen.parent >= 0 ? String(chosen.parent) : "");
      this.title.textContent = packed.title || packed.scenario;
      return this.choose(true);
    }

    async trackOf(key) {
      if (key === "") return null;
      if (key.startsWith("other ")) {
        const other = this.others[Number(key.slice(6))];
        const drive = SwerveDrive.read(await other.load());
        return SwerveDrive.trackOf(drive, SwerveDrive.find(drive, other.outcome));
      }
      return SwerveDrive.trackOf(this.drive, this.drive.rollouts.find((one) => String(one.rollout) === key));
    }

    async choose(fromStart) {
      const first = await this.trackOf(this.first.value);
      let second = null;
      try {
        second = this.second.value === this.first.value ? null : await this.trackOf(this.second.value);
      } catch (problem) {
        this.words.textContent = `cannot be laid over: ${problem.message}`;
        this.second.value = "";
      }
      this.tracks = second ? [first, second] : [first];
      this.moment = SwerveDrive.momentOf(first);
      this.scene.whole = null;
      this.pictured = null;
      this.slider.max = this.count() - 1;
      const { scenario, weather, light, left_out: left } = this.drive.document;
      const r = first.rollout;
      this.words.textContent = [scenario, r.outcome ? `outcome ${r.outcome}` : "", `${SwerveDrive.plain(weather)}, ${light}`,
        r.tier ? `${r.tier} world` : "", r.planner || "", Number.isFinite(r.score) ? `score ${r.score.toFixed(2)}` : "",
        left > 0 ? `${left} more rollouts of this job did not fit` : ""].filter(Boolean).join(" · ");
      this.fillEvents();
      this.resize();
      this.seek(fromStart ? this.moment.tick - BEFORE_TICKS : this.at);
    }

    fillEvents() {
      this.list.replaceChildren(...this.tracks[0].events.map((event) => make("li", {},
        make("button", { type: "button", class: `p-event p-${event.kind}`, text: `${seconds(event.tick)}  ${event.text}`,
          onclick: () => { this.pause(); this.seek(event.tick); } }))));
    }

    count() {
      return Math.max(...this.tracks.map((track) => track.count), 1);
    }

    // ---- time ----

    seek(at) {
      this.at = Math.min(Math.max(at, 0), this.count() - 1);
      this.draw();
    }

    step(ticks) {
      this.pause();
      this.seek(Math.round(this.at) + ticks);
    }

    toggle() {
      if (this.playing) this.pause();
      else this.play();
    }

    play() {
      if (this.tracks.length === 0) return;
      if (this.at >= this.count() - 1) this.at = 0;
      this.playing = true;
      this.playButton.textContent = "⏸";
      let last = null;
      const frame = (now) => {
        if (!this.playing) return;
        if (last !== null) this.at += (Math.min(now - last, 250) / 1000 / TICK_S) * this.speed;
        last = now;
        if (this.at >= this.count() - 1) {
          this.seek(this.count() - 1);
          this.pause();
          return;
        }
        this.draw();
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    }

    pause() {
      this.playing = false;
      this.playButton.textContent = "▶";
      this.askFrames();
    }

    event(direction) {
      const now = Math.round(this.at);
      const ticks = this.tracks[0].events.map((event) => event.tick).filter((tick) => (tick - now) * direction > 0);
      if (ticks.length > 0) {
        this.pause();
        this.seek(direction > 0 ? Math.min(...ticks) : Math.max(...ticks));
      }
    }

    setSpeed(change) {
      const i = SPEEDS.indexOf(this.speed) + change;
      this.speed = SPEEDS[Math.min(Math.max(i, 0), SPEEDS.length - 1)];
      this.speeds.value = this.speed;
    }

    // Pixels a metre: the way to the other one, and a car's length behind it, fit between ego and the edge.
    fittingScale() {
      const track = this.tracks[0];
      const other = track.agents.find((agent) => agent.agent === this.moment.agent);
      const t = Math.min(Math.floor(this.at + 1e-6), track.count - 1);
      if (this.zoomed || !this.follow || !other || !other.present[t]) return this.scale;
      const away = Math.hypot(other.x[t] - track.ego.x[t], other.y[t] - track.ego.y[t]);
      const room = Math.min(this.canvas.height / this.ratio * 0.6, this.canvas.width / this.ratio * 0.9);
      return Math.min(Math.max(room / (away + 8), 4), 22);
    }

    zoom(factor) {
      this.zoomed = true;
      this.scale = Math.min(Math.max(this.scale * factor, 1), 60);
      this.draw();
    }

    turnView() {
      this.follow = !this.follow;
      this.viewButton.textContent = this.follow ? "whole drive" : "follow ego";
      this.draw();
    }

    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
      if (event.key === " " && event.target.tagName === "BUTTON") return; // presses it
      const actions = {
        " ": () => this.toggle(), ArrowLeft: () => this.step(event.shiftKey ? -10 : -1),
        ArrowRight: () => this.step(event.shiftKey ? 10 : 1), Home: () => this.seek(0), End: () => this.seek(this.count() - 1),
        n: () => this.event(1), p: () => this.event(-1), "[": () => this.setSpeed(-1), "]": () => this.setSpeed(1),
        "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), m: () => this.turnView(),
      };
      const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!action || this.tracks.length === 0) return;
      event.preventDefault();
      event.stopPropagation(); // the page may have keys of its own
      action();
    }

    // ---- drawing ----

    resize() {
      if (this.tracks.length === 0) return;
      this.colours = coloursOf(this.root);
      this.ratio = Math.min(window.devicePixelRatio || 1, 2);
      const fit = (canvas, width, height) => {
        canvas.width = Math.max(Math.round(width * this.ratio), 1);
        canvas.height = Math.max(Math.round(height * this.ratio), 1);
      };
      fit(this.canvas, this.canvas.clientWidth, this.canvas.clientHeight);
      const layout = layoutOf(this.axis.clientWidth);
      this.axis.style.height = `${layout.height}px`;
      fit(this.charts, this.axis.clientWidth, layout.height);
      drawCharts(this.charts, this.tracks, this.count(), this.ratio, this.colours);
      this.draw();
    }

    draw() {
      if (this.tracks.length === 0 || !this.colours) return;
      this.scale = this.fittingScale();
      SwerveScene.draw(this.canvas, this.scene, this.tracks, this.at,
        { follow: this.follow, scale: this.scale, ratio: this.ratio, named: this.moment.agent }, this.colours);
      const layout = layoutOf(this.axis.clientWidth);
      const x = layout.left + (this.at / Math.max(this.count() - 1, 1)) * (layout.right - layout.left);
      this.cursor.style.transform = `translateX(${x}px)`;
      const tick = Math.floor(this.at + 1e-6);
      if (tick !== this.shown || this.pictured === null) {
        this.shown = tick;
        this.read(tick);
        this.picture(tick);
        this.askFrames();
      }
    }

    // The figures of a tick.
    read(tick) {
      this.slider.value = tick;
      this.clock.textContent = `${seconds(tick)} of ${seconds(this.count() - 1)}`;
      const track = this.tracks[0];
      const cells = (value) => this.tracks.map((one) => make("td", { text: value(one, Math.min(tick, one.count - 1)) }));
      const row = (name, value) => make("tr", {}, make("th", { text: name, scope: "row" }), ...cells(value));
      const intent = (one, t) => {
        const points = one.plans.get(t) || [];
        return `${points.length ? `${figure(Math.hypot(...points.slice(-2)))} m` : "–"}, ${(one.perceived.get(t) || []).length}`;
      };
      const nearest = (one, t) => (one.nearest[t] >= 0 ? one.drive.document.agents[one.nearest[t]].id : "–");
      this.readings.replaceChildren(
        row("speed", (one, t) => `${figure(one.ego.speed[t])} m/s`),
        row("acceleration", (one, t) => `${figure(one.ego.accel[t])} m/s²`),
        row("asked for", (one, t) => `${figure(one.ego.action_accel[t])} m/s²`),
        row("steering", (one, t) => `${figure(one.ego.action_steer[t] * 1000, 0)} mrad`),
        row("gap", (one, t) => (Number.isFinite(one.gap[t]) ? `${figure(one.gap[t], 2)} m` : "–")),
        row("nearest", nearest),
        row("TTC", (one, t) => (Number.isFinite(one.ttc[t]) ? `${figure(one.ttc[t])} s` : "–")),
        ...(this.tracks.some((one) => one.plans.size + one.perceived.size > 0) ? [row("planned, perceived (dashed)", intent)] : []),
        row("guardian", (one, t) => (one.guardian[t] ? "would act" : "–")));
      [...this.list.children].forEach((line, i) => {
        const { tick: first, last } = track.events[i];
        line.classList.toggle("p-now", first <= tick && tick <= Math.max(last, first + 5));
        if (first <= tick) this.list.scrollTop = line.offsetTop - this.list.offsetTop - 40;
      });
      this.root.classList.toggle("p-over", track.guardian[Math.min(tick, track.count - 1)] === 1);
    }

    // The last picture up to a tick, else the first one.
    picture(tick) {
      const frames = this.tracks[0].frames;
      const frame = frames.filter((one) => one.tick <= tick).pop() || frames[0];
      if (frame === this.pictured) return;
      this.pictured = frame;
      for (const [image, data] of [[this.front, frame && frame.front], [this.bev, frame && frame.bev]]) {
        image.hidden = !data;
        if (data) image.src = `data:image/png;base64,${data}`;
      }
      this.caption.textContent = frame
        ? `${[frame.front && "front camera", frame.bev && "bird's-eye view"].filter(Boolean).join(" and ")} at ` +
          `${seconds(frame.tick)}` +
          `${this.tracks[0].generated ? ", generated by the world model" : ""}` : "";
    }

    forgetFrames() {
      clearTimeout(this.asking);
      this.asked = null; // an answer that is under way is too late
      this.seen.hidden = true;
    }

    // Every camera of its rig, once the drive rests at a tick; of a model's drive as the model made them, if it made those of a rig.
    askFrames() {
      const track = this.tracks[0];
      this.forgetFrames();
      if (!this.options.frames || !track || this.playing || !track.rollout.outcome) return;
      const asked = { outcome: track.rollout.outcome, tick: Math.min(this.shown, track.count - 1) };
      this.asked = asked;
      this.asking = setTimeout(async () => {
        try {
          const frames = await this.options.frames(asked.outcome, asked.tick);
          if (this.asked === asked) this.showFrames(frames);
        } catch (problem) {
          if (this.asked !== asked || track.generated) return; // a model whose cameras nobody kept
          this.seen.replaceChildren(make("p", { class: "p-caption", text: `no cameras: ${problem.message}` }));
          this.seen.hidden = false;
        }
      }, REST_MS);
    }

    showFrames(frames) {
      this.seen.replaceChildren(...frames.cameras.map((camera) => {
        const size = `${camera.width} x ${camera.height}`;
        const image = make("img", { src: `data:image/jpeg;base64,${camera.jpeg}`, width: camera.width, height: camera.height,
          alt: `camera ${camera.id}, ${size}`, title: "at its own size, and back", onclick: () => shown.classList.toggle("p-whole") });
        const shown = make("figure", {}, image, make("figcaption", { text: `${camera.id}, ${size}` }));
        return shown;
      }), make("p", { class: "p-caption", text: `rig ${frames.rig} at ${seconds(frames.tick)}` +
        `${this.tracks[0].generated ? ", generated by the world model" : ""}` }));
      this.seen.hidden = frames.cameras.length === 0;
    }
  }

  return { create: (container, options) => new Player(container, options) };
})();
