"use strict";
// The page at which somebody drives: keys and gamepad to actions, frames to pictures. One WebSocket is one
// session; docs/interactive.md has the messages. Needs drive.js and scene.js before it.
(() => {
  const TICK_S = 0.1;
  const BACK_TICKS = 30;
  const FROM_START = 6000; // the longest scenario
  const CAMERA = { width: 96, height: 64 };
  const CONTROL_MS = 50;
  const PRESS = "Press an arrow key, or Go.";
  const WHEELBASE_M = 2.9;
  const PEDALS = { faster: 2.5, brake: -4, hard: -9 };  // m/s2
  const LATERAL = 4;     // m/s2 that full steering asks for at speed
  const STEER_MAX = 0.5; // rad, at walking pace
  const STEER_S = 0.35;  // from straight to full

  const byId = (id) => document.getElementById(id);
  const [key, asked] = location.hash.slice(1).split("/"); // the server's, and the name of a kept session, if any
  const root = location.pathname.replace(/(web\/)?[^/]*$/, ""); // of the API: of a store's server this page is web/wheel.html
  const style = getComputedStyle(document.body);
  const colours = new Proxy({}, { get: (_, name) => style.getPropertyValue(`--p-${String(name)}`).trim() || "#888" });

  let socket = null;
  let refusal = ""; // the last message, where it was an error: it may say why the connection ends
  let scene = null;   // of SwerveScene, once the scenario's map is here
  let track = null;   // what was driven, as the player's tracks are
  let ghost = null;   // the line that was left last
  let drive = null;
  let frame = null;   // the newest
  let begun = null;   // what the server said of the session; null: its frames are not ours yet
  let next = null;    // drive that was asked for; the one before goes on until the server says "begun"
  let taking = false; // a kept session was asked for, whose scenario is not known before "begun"
  let turn = 0;       // of begin() and takeUp(): an answer to an earlier one comes too late
  let ticks = 0;
  let lates = 0;
  let steer = 0;
  const held = new Set();

  const tell = (text, kind = "") => { byId("told").textContent = text; byId("told").className = kind; };
  const send = (message) => { if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); };

  // ---- what was driven ----

  const emptyTrack = () => ({
    drive, rollout: drive.rollouts[0], count: 1,
    ego: { x: [], y: [], heading: [] },
    agents: drive.document.agents.map((_, agent) => ({ agent, present: [], x: [], y: [], heading: [], speed: [] })),
    guardian: [], plans: new Map(), perceived: new Map(),
  });

  const cut = (columns, length) => { for (const column of Object.values(columns)) if (Array.isArray(column)) column.length = Math.min(column.length, length); };

  // A frame that was left out (a slow reader) repeats the one before it.
  const put = (column, tick, value) => {
    while (column.length < tick) column.push(column.length ? column[column.length - 1] : value);
    column.push(value);
  };

  const record = (at) => {
    cut(track.ego, at.tick);
    ["x", "y", "heading"].forEach((name, i) => put(track.ego[name], at.tick, at.ego[i]));
    track.agents.forEach((agent, i) => {
      const state = at.agents[i];
      cut(agent, at.tick);
      put(agent.present, at.tick, state ? 1 : 0);
      ["x", "y", "heading", "speed"].forEach((name, k) =>
        put(agent[name], at.tick, state ? state[k] : agent[name].length ? agent[name][agent[name].length - 1] : 0));
    });
    track.count = at.tick + 1;
  };

  const copyOf = (from) => ({ ...from, ego: { x: [...from.ego.x], y: [...from.ego.y], heading: [...from.ego.heading] }, agents: [] });

  // ---- pictures ----

  const draw = () => {
    if (!scene || !frame) return;
    const canvas = byId("scene");
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    SwerveScene.draw(canvas, scene, ghost ? [track, ghost] : [track], track.count - 1, { follow: true, scale: 7, ratio }, colours);
  };

  // The large picture: the windscreen, or the front camera where the world shows none.
  const drawAhead = (image, caption) => {
    const canvas = byId("windscreen");
    if (canvas.width !== image.width || canvas.height !== image.height) {
      canvas.width = image.width;
      canvas.height = image.height;
    }
    canvas.getContext("2d").drawImage(image, 0, 0);
    byId("caption").textContent = `Above: ${caption}. Below: what planners see, the cameras of the built-in rig.`;
  };

  // The three cameras as they are, and behind them the windscreen as a JPEG file.
  const drawPictures = async (bytes) => {
    if (!begun) return;
    drawCameras(bytes);
    const jpeg = bytes.subarray(3 * 3 * CAMERA.width * CAMERA.height);
    if (jpeg.length === 0) {
      drawAhead(byId("front"), "the front camera");
      return;
    }
    const image = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
    drawAhead(image, "the windscreen");
    image.close();
  };

  const drawCameras = (bytes) => {
    const size = CAMERA.width * CAMERA.height;
    ["left", "front", "right"].forEach((id, c) => {
      const image = new ImageData(CAMERA.width, CAMERA.height);
      for (let i = 0; i < size; i++) {
        for (let k = 0; k < 3; k++) image.data[4 * i + k] = bytes[3 * (c * size + i) + k];
        image.data[4 * i + 3] = 255;
      }
      byId(id).getContext("2d").putImageData(image, 0, 0);
    });
  };

  const ENDS = {
    horizon: "The scenario's time is over.", collision: "Ego hit somebody.", sick: "The world became unbelievable: no result.",
  };

  const showFigures = (at) => {
    byId("speed").textContent = `${(3.6 * at.ego[3]).toFixed(0)} km/h`;
    byId("time").textContent = `${(at.tick * TICK_S).toFixed(1)} of ${(begun.ticks * TICK_S).toFixed(0)} s`;
    byId("accel").textContent = `${at.ego[4].toFixed(1)} m/s²`;
    byId("steer").textContent = `${(at.ego[5] * 180 / Math.PI).toFixed(1)}°`;
    byId("go").textContent = at.paused ? "Go" : "Pause";
    if (at.tier === "") return;
    ticks += 1;
    lates += at.late ? 1 : 0;
    byId("tier").textContent = at.steps > 0 ? `${at.tier}, ${at.steps} step${at.steps > 1 ? "s" : ""}` : at.tier;
    byId("slack").textContent = `${at.slack_ms.toFixed(1)} of ${at.deadline_ms} ms`;
    byId("slack").className = at.late ? "late" : "";
    byId("cost").textContent = `${at.wait_ms.toFixed(1)}, ${at.compute_ms.toFixed(1)} ms`;
    byId("late").textContent = `${lates} of ${ticks}`;
  };

  const onFrame = (at) => {
    if (!begun) return;
    frame = at;
    record(at);
    showFigures(at);
    if (!at.paused && byId("told").textContent === PRESS) tell("");
    if (at.end) {
      tell(ENDS[at.end] || at.end, at.end === "horizon" ? "" : "bad");
      send({ type: "outcome" });
    }
    requestAnimationFrame(draw);
  };

  const onOutcome = (outcome) => {
    const why = outcome.reasons && outcome.reasons.length ? `: ${outcome.reasons.join(", ").replaceAll("_", " ")}` : "";
    tell(`${ENDS[frame.end] || ""} ${outcome.verdict}${why}. Go back and drive otherwise, or save.`, outcome.verdict === "pass" ? "good" : "bad");
  };

  // ---- orders ----

  const timing = () => ({ rate: Number(byId("rate").value), deadline_ms: 100 });

  // The scenario's drive without rollouts; null: it is not to be had, or something else was asked for meanwhile.
  const fetchDrive = async (id) => {
    const mine = turn;
    const answer = await fetch(`${root}v1/scenario?key=${key}&scenario=${encodeURIComponent(id)}`);
    const text = await answer.text();
    if (mine !== turn) return null;
    if (!answer.ok) { tell(text, "bad"); return null; }
    return SwerveDrive.read(JSON.parse(text));
  };

  const begin = async () => {
    const id = byId("scenario").value;
    const seed = Number(byId("seed").value) || 0;
    turn += 1;
    next = null; taking = false;
    tell(`Fetching ${id}.`);
    const read = await fetchDrive(id);
    if (!read) return;
    next = read;
    send({ type: "begin", scenario: id, seed, ...timing() });
  };

  const takeUp = (name) => {
    turn += 1;
    next = null; taking = true;
    tell(`Taking up ${name}.`);
    send({ type: "begin", resume: name, ...timing() });
  };

  const go = () => { if (frame && frame.paused) send({ type: "go" }); };
  const back = (count, keep) => {
    if (!frame) return;
    if (keep) ghost = copyOf(track);
    steer = 0;
    tell(keep ? "The line that you left stays, and is drawn pale." : "");
    send({ type: "back", ticks: count, keep });
  };

  // ---- controls ----

  const pads = () => [...navigator.getGamepads()].find((pad) => pad && pad.connected);

  const pedal = (pad) => {
    const down = (...names) => names.some((name) => held.has(name));
    if (down("ArrowDown", "s")) return held.has("Shift") ? PEDALS.hard : PEDALS.brake;
    if (down("ArrowUp", "w")) return PEDALS.faster;
    if (!pad) return 0;
    const [gas, brake] = [pad.buttons[7], pad.buttons[6]].map((button) => (button ? button.value : 0));
    return brake > 0.02 ? PEDALS.hard * brake : PEDALS.faster * gas;
  };

  // Full steering at this speed: as much as the tyres like.
  const fullSteer = (speed) => Math.min(STEER_MAX, Math.atan(LATERAL * WHEELBASE_M / Math.max(speed, 3) ** 2));

  const wheel = (pad) => {
    const turn = (held.has("ArrowLeft") || held.has("a") ? 1 : 0) - (held.has("ArrowRight") || held.has("d") ? 1 : 0);
    const full = fullSteer(frame.ego[3]);
    const stick = pad && Math.abs(pad.axes[0]) > 0.05 ? -pad.axes[0] : 0;
    const wanted = full * (turn || stick);
    const step = full * CONTROL_MS / 1000 / STEER_S;
    steer += Math.max(-step, Math.min(step, wanted - steer));
    steer = Math.max(-full, Math.min(full, steer));
    return steer;
  };

  const control = () => {
    if (!frame || frame.end) return;
    const pad = pads();
    const accel = pedal(pad);
    if (frame.paused) {
      if (pad && (accel !== 0)) go();
      return;
    }
    send({ type: "act", accel, steer: wheel(pad) });
  };

  const KEYS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "w", "a", "s", "d"]);
  const nameOf = (event) => (event.key.length === 1 ? event.key.toLowerCase() : event.key);

  const onKey = (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.altKey || event.metaKey) return;
    const name = nameOf(event);
    const orders = {
      " ": () => send({ type: frame && frame.paused ? "go" : "pause" }),
      b: () => back(BACK_TICKS, false), f: () => back(BACK_TICKS, true), r: () => back(FROM_START, false),
    };
    if (KEYS.has(name) || name === "Shift") {
      held.add(name);
      if (KEYS.has(name)) { event.preventDefault(); go(); }
    } else if (orders[name] && !event.repeat) {
      event.preventDefault();
      orders[name]();
    }
  };

  // ---- the connection ----

  const onHello = (hello) => {
    const select = byId("scenario");
    select.replaceChildren(...hello.scenarios.map((one) => {
      const option = new Option(one.id, one.id);
      option.title = one.title;
      return option;
    }));
    byId("link").textContent = `${hello.world} world`;
    byId("keeping").hidden = !hello.keeps;
    if (asked) takeUp(asked);
    else begin();
  };

  const onBegun = async (message) => {
    const taken = taking;
    frame = null; begun = null;
    byId("session").value = message.session;
    if (taken) next = await fetchDrive(message.scenario);
    if (!next || message.scenario !== next.document.scenario) return; // another is asked for already
    begun = message;
    drive = next;
    scene = SwerveScene.create(drive);
    track = emptyTrack();
    ghost = null; ticks = 0; lates = 0; steer = 0;
    byId("command").hidden = true;
    tell(PRESS);
    if (taken) {
      byId("scenario").value = message.scenario;
      send({ type: "pause" }); // is answered with the frame at which it stands: the one before came too early
    }
  };

  const onSaved = (saved) => {
    tell(`Saved ${saved.path}.`, "good");
    byId("command").textContent = saved.command;
    byId("command").hidden = false;
  };

  const onMessage = (event) => {
    if (typeof event.data !== "string") { drawPictures(new Uint8Array(event.data)); return; }
    const message = JSON.parse(event.data);
    refusal = message.type === "error" ? message.text : "";
    if (message.type === "hello") onHello(message);
    else if (message.type === "begun") onBegun(message);
    else if (message.type === "frame") onFrame(message);
    else if (message.type === "outcome") onOutcome(message.outcome);
    else if (message.type === "saved") onSaved(message);
    else if (message.type === "moving") tell(`${message.text}.`, "bad");
    else if (message.type === "moved") tell("Another worker goes on with the session.", "good");
    else if (message.type === "error") tell(message.text, "bad");
  };

  const connect = () => {
    socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}${root}v1/sessions?key=${key}`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = onMessage;
    socket.onclose = () => {
      byId("link").textContent = "";
      const why = begun ? "The connection has ended. Load the page again." : "The server does not let this page in: open the address that it printed.";
      tell(refusal ? `${refusal}. The connection has ended.` : why, "bad");
    };
  };

  window.addEventListener("keydown", onKey);
  window.addEventListener("keyup", (event) => held.delete(nameOf(event)));
  window.addEventListener("blur", () => held.clear());
  window.addEventListener("resize", draw);
  byId("begin").onclick = begin;
  byId("scenario").onchange = begin;
  byId("go").onclick = () => send({ type: frame && frame.paused ? "go" : "pause" });
  byId("back").onclick = () => back(BACK_TICKS, false);
  byId("fork").onclick = () => back(BACK_TICKS, true);
  byId("again").onclick = () => back(FROM_START, false);
  byId("keeping").onsubmit = (event) => { event.preventDefault(); takeUp(byId("session").value); };
  byId("saving").onsubmit = (event) => { event.preventDefault(); send({ type: "save", name: byId("name").value }); };
  setInterval(control, CONTROL_MS);
  connect();
})();
