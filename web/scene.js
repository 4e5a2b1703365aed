"use strict";
// The road from above on a canvas: lanes, crosswalks, route, goal, boxes of ego and agents, their trails.
// A scene keeps paths of the map; a frame sets one transform and draws what the view can see.
const SwerveScene = (() => {
  const TRAIL_TICKS = 30;
  const VULNERABLE = new Set(["pedestrian", "cyclist", "motorcycle", "animal"]);

  const pathOf = (points, closed) => {
    const path = new Path2D();
    points.forEach(([x, y], i) => (i === 0 ? path.moveTo(x, y) : path.lineTo(x, y)));
    if (closed) path.closePath();
    return path;
  };

  const boundsOf = (points) => {
    const bounds = { x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity };
    for (const [x, y] of points) {
      bounds.x0 = Math.min(bounds.x0, x); bounds.x1 = Math.max(bounds.x1, x);
      bounds.y0 = Math.min(bounds.y0, y); bounds.y1 = Math.max(bounds.y1, y);
    }
    return bounds;
  };

  // Long lanes are cut into pieces, so that a view draws a few of them.
  const PIECE = 40;
  const pieces = (lane) => {
    const list = [];
    for (let i = 0; i + 1 < lane.points.length; i += PIECE) {
      const left = lane.left.points.slice(i, i + PIECE + 1);
      const right = lane.right.points.slice(i, i + PIECE + 1);
      const outline = [...left, ...right.slice().reverse()];
      list.push({
        kind: lane.kind, area: pathOf(outline, true), bounds: boundsOf(outline),
        lines: [[lane.left.marking, pathOf(left)], [lane.right.marking, pathOf(right)]],
      });
    }
    return list;
  };

  const create = (drive) => {
    const lanes = drive.lanes.flatMap(pieces);
    const polygons = (list, kind) => list.map((points) => ({ kind, area: pathOf(points, true), bounds: boundsOf(points) }));
    const route = drive.document.ego.route.filter((i) => drive.lanes[i])
      .map((i) => ({ area: pathOf(drive.lanes[i].points), bounds: boundsOf(drive.lanes[i].points) }));
    return {
      drive, lanes, route,
      areas: polygons(drive.drivable, "drivable"),
      details: [...polygons(drive.crosswalks, "crosswalk"), ...polygons(drive.surfaces, "surface")],
    };
  };

  // ---- a frame ----

  const between = (values, at) => {
    const i = Math.min(Math.floor(at), values.length - 1);
    const k = Math.min(i + 1, values.length - 1);
    return values[i] + (values[k] - values[i]) * (at - i);
  };

  const turnBetween = (values, at) => {
    const i = Math.min(Math.floor(at), values.length - 1);
    const k = Math.min(i + 1, values.length - 1);
    const turn = values[k] - values[i];
    return values[i] + (turn - 2 * Math.PI * Math.round(turn / (2 * Math.PI))) * (at - i);
  };

  const poseAt = (columns, at) => ({
    x: between(columns.x, at), y: between(columns.y, at), heading: turnBetween(columns.heading, at),
  });

  // Metres to pixels, ego looking up ("follow"), or north up with everything that is driven ("whole").
  const viewOf = (scene, track, at, options, width, height) => {
    if (options.follow) {
      const ego = poseAt(track.ego, at);
      return { x: ego.x, y: ego.y, turn: Math.PI / 2 - ego.heading, scale: options.scale, cx: width / 2, cy: height * 0.68 };
    }
    const b = scene.whole || (scene.whole = boundsOf(
      [...track.ego.x].map((x, i) => [x, track.ego.y[i]])));
    const fit = Math.min(width / (b.x1 - b.x0 + 40), height / (b.y1 - b.y0 + 40));
    return { x: (b.x0 + b.x1) / 2, y: (b.y0 + b.y1) / 2, turn: 0, scale: fit * options.scale / 7, cx: width / 2, cy: height / 2 };
  };

  const apply = (context, view, ratio) => {
    const c = Math.cos(view.turn) * view.scale * ratio;
    const s = Math.sin(view.turn) * view.scale * ratio;
    context.setTransform(c, -s, -s, -c, view.cx * ratio - c * view.x + s * view.y,
      view.cy * ratio + s * view.x + c * view.y);
  };

  const seen = (view, bounds, reach) =>
    bounds.x0 < view.x + reach && bounds.x1 > view.x - reach && bounds.y0 < view.y + reach && bounds.y1 > view.y - reach;

  const drawMap = (context, scene, view, reach, colours) => {
    for (const area of scene.areas) {
      if (!seen(view, area.bounds, reach)) continue;
      context.fillStyle = colours.driving;
      context.fill(area.area);
    }
    const lanes = scene.lanes.filter((lane) => seen(view, lane.bounds, reach));
    for (const lane of lanes) {
      context.fillStyle = colours[lane.kind] || colours.driving;
      context.fill(lane.area);
    }
    context.strokeStyle = colours.route;
    context.lineWidth = 1.6;
    for (const lane of scene.route) if (seen(view, lane.bounds, reach)) context.stroke(lane.area);
    context.strokeStyle = colours.marking;
    context.lineWidth = Math.max(0.14, 1 / view.scale);
    for (const [kind, dash] of [["solid", []], ["dashed", [3, 4.5]]]) {
      context.setLineDash(dash);
      for (const lane of lanes) {
        for (const [marking, line] of lane.lines) if (marking === kind) context.stroke(line);
      }
    }
    context.setLineDash([]);
    for (const area of scene.details) {
      if (!seen(view, area.bounds, reach)) continue;
      context.fillStyle = colours[area.kind];
      context.fill(area.area);
    }
  };

  const LIGHTS = { red: "#d02121", red_yellow: "#d86b10", yellow: "#e6b000", green: "#1a9a4a", off: "#60666c",
    stop_sign: "#d02121", yield_sign: "#60666c", priority_sign: "#e6b000", give_way: "#60666c",
    give_way_right: "#60666c", give_way_oncoming: "#60666c" };

  // Stop lines, as their lights tell the traffic before them.
  const drawSignals = (context, drive, lights, view) => {
    context.lineWidth = Math.max(0.8, 3 / view.scale);
    drive.signals.forEach((signal, i) => {
      if (!LIGHTS[lights[i]]) return;
      context.strokeStyle = LIGHTS[lights[i]];
      context.setLineDash(/_sign$|^give_way/.test(lights[i]) ? [0.6, 0.6] : []);
      for (const [x1, y1, x2, y2] of signal.lines) context.stroke(pathOf([[x1, y1], [x2, y2]]));
    });
    context.setLineDash([]);
  };

  const drawGoal = (context, drive, view, colours) => {
    context.strokeStyle = colours.goal;
    context.lineWidth = 2 / view.scale;
    context.setLineDash([6 / view.scale, 4 / view.scale]);
    if (drive.goalArea) context.stroke(pathOf(drive.goalArea, true));
    if (drive.goal) {
      context.beginPath();
      context.arc(drive.goal.x_m, drive.goal.y_m, Math.max(drive.goal.radius_m, 0.5), 0, 2 * Math.PI);
      context.stroke();
    }
    context.setLineDash([]);
  };

  const drawTrail = (context, columns, present, at, colour, view) => {
    const last = Math.min(Math.floor(at), columns.x.length - 1);
    context.strokeStyle = colour;
    context.lineWidth = 2 / view.scale;
    context.beginPath();
    for (let t = Math.max(0, last - TRAIL_TICKS), open = false; t <= last; t++) {
      if (present && !present[t]) { open = false; continue; }
      if (open) context.lineTo(columns.x[t], columns.y[t]);
      else context.moveTo(columns.x[t], columns.y[t]);
      open = true;
    }
    context.stroke();
  };

  // Objects that the planner perceived and its trajectory, as it said at that tick.
  const drawIntent = (context, track, tick, view, colours) => {
    const [x, y] = [track.ego.x[tick], track.ego.y[tick]];
    context.setLineDash([4 / view.scale, 3 / view.scale]);
    for (const box of track.perceived.get(tick) || []) {
      drawBox(context, { x: x + box.x, y: y + box.y, heading: box.heading }, { length_m: box.length_m + 0.6, width_m: box.width_m + 0.6 },
        view, null, colours.perceived);
    }
    const points = track.plans.get(tick) || [];
    context.strokeStyle = colours.plan;
    context.lineWidth = 3 / view.scale;
    context.beginPath();
    context.moveTo(x, y);
    for (let i = 0; i + 1 < points.length; i += 2) context.lineTo(x + points[i], y + points[i + 1]);
    context.stroke();
    context.setLineDash([]);
  };

  const drawBox = (context, pose, size, view, fill, stroke) => {
    const c = Math.cos(pose.heading);
    const s = Math.sin(pose.heading);
    const l = Math.max(size.length_m / 2, 1.5 / view.scale);
    const w = Math.max(size.width_m / 2, 1.5 / view.scale);
    const at = (u, v) => [pose.x + u * c - v * s, pose.y + u * s + v * c];
    context.beginPath();
    context.moveTo(...at(l, w)); context.lineTo(...at(-l, w)); context.lineTo(...at(-l, -w)); context.lineTo(...at(l, -w));
    context.closePath();
    if (fill) { context.fillStyle = fill; context.fill(); }
    context.strokeStyle = stroke;
    context.lineWidth = 1.5 / view.scale;
    context.stroke();
    context.beginPath(); // where it heads
    context.moveTo(...at(l * 0.35, w)); context.lineTo(...at(l, 0)); context.lineTo(...at(l * 0.35, -w));
    context.stroke();
  };

  // The name and speed of an agent beside its box.
  const drawName = (context, agent, name, when, view, ratio, colours) => {
    const pose = poseAt(agent, when);
    const c = Math.cos(view.turn) * view.scale;
    const s = Math.sin(view.turn) * view.scale;
    const x = view.cx + c * (pose.x - view.x) - s * (pose.y - view.y);
    const y = view.cy - s * (pose.x - view.x) - c * (pose.y - view.y);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const text = `${name}  ${between(agent.speed, when).toFixed(1)} m/s`;
    const left = Math.min(x + 14, context.canvas.width / ratio - context.measureText(text).width - 6);
    context.lineWidth = 3;
    context.strokeStyle = colours.ground;
    context.strokeText(text, left, y - 12);
    context.fillStyle = colours.ink;
    context.fillText(text, left, y - 12);
  };

  const agentColour = (kind, colours) =>
    VULNERABLE.has(kind) ? colours.vulnerable : kind === "object" ? colours.object : colours.agent;

  const drawTrack = (context, track, at, view, colours, ghost) => {
    const document = track.drive.document;
    const tick = Math.min(Math.floor(at), track.count - 1);
    const when = Math.min(at, track.count - 1);
    for (const agent of track.agents) {
      if (!agent.present[tick]) continue;
      const kind = document.agents[agent.agent].kind;
      const colour = agentColour(kind, colours);
      drawTrail(context, agent, agent.present, when, colour, view);
      drawBox(context, poseAt(agent, when), document.agents[agent.agent], view, ghost ? null : colour,
        ghost ? colours.ghost : colours.outline);
    }
    const own = ghost ? colours.ghost : colours.ego;
    if (!ghost) drawIntent(context, track, tick, view, colours);
    drawTrail(context, track.ego, null, when, own, view);
    drawBox(context, poseAt(track.ego, when), document.ego, view, ghost ? null : own,
      track.guardian[tick] ? colours.guardian : ghost ? colours.ghost : colours.outline);
  };

  // tracks: the one that is watched, perhaps another over it. options: follow, scale (pixels a metre), named (an agent).
  const draw = (canvas, scene, tracks, at, options, colours) => {
    const context = canvas.getContext("2d", { alpha: false });
    const ratio = options.ratio;
    const width = canvas.width / ratio;
    const height = canvas.height / ratio;
    const view = viewOf(scene, tracks[0], at, options, width, height);
    const reach = Math.hypot(width, height) / view.scale;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    apply(context, view, ratio);
    context.lineJoin = "round";
    drawMap(context, scene, view, reach, colours);
    drawGoal(context, scene.drive, view, colours);
    drawSignals(context, scene.drive, SwerveDrive.lightsAt(tracks[0], Math.floor(at)), view);
    if (tracks[1]) drawTrack(context, tracks[1], at, view, colours, true);
    drawTrack(context, tracks[0], at, view, colours, false);
    const named = tracks[0].agents.find((agent) => agent.agent === options.named);
    const when = Math.min(at, tracks[0].count - 1);
    if (named && named.present[Math.floor(when)]) {
      drawName(context, named, tracks[0].drive.document.agents[named.agent].id, when, view, ratio, colours);
    }
    return view;
  };

  return { create, draw };
})();
