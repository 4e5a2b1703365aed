"use strict";
// Drives as data: reads a document "swerve-drive/1" (docs/player.md) into arrays by tick, and measures
// gap and time to collision between its boxes. No page, no canvas: player.js draws what this gives.
//
// Invariant: a track covers ticks 0 .. count - 1 of one rollout, what it shares with its parents included,
// so that two tracks of one scenario are compared tick by tick.
const SwerveDrive = (() => {
  const CM = 0.01;
  const MILLI = 0.001;
  const TTC_HORIZON_S = 3;
  const EGO_UNITS = {
    x: [CM, 2], y: [CM, 2], heading: [MILLI, 1], speed: [CM, 1], accel: [CM, 1], lat_accel: [CM, 1],
    steer: [MILLI, 1], action_accel: [CM, 1], action_steer: [MILLI, 1],
  };
  const AGENT_UNITS = { x: [CM, 2], y: [CM, 2], heading: [MILLI, 1], speed: [CM, 1] };

  // A column of differences as numbers in their units.
  const unpack = (column, count, unit, order) => {
    const values = new Float64Array(count);
    values.set(column.slice(0, count));
    for (let done = order; done > 0; done--) {
      for (let i = done; i < count; i++) values[i] += values[i - 1];
    }
    return values.map((value) => value * unit);
  };

  const line = (packed) => {
    const x = unpack(packed.x, packed.count, CM, 2);
    const y = unpack(packed.y, packed.count, CM, 2);
    return Array.from(x, (value, i) => [value, y[i]]);
  };

  // A centre line moved to its left (+1) or right (-1) by half of its width.
  const border = (points, widths, side) => points.map(([x, y], i) => {
    const a = points[Math.max(i - 1, 0)];
    const b = points[Math.min(i + 1, points.length - 1)];
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const shift = (side * widths[i]) / 2 / length;
    return [x - (b[1] - a[1]) * shift, y + (b[0] - a[0]) * shift];
  });

  const lane = (packed) => {
    const points = line(packed);
    const widths = unpack(packed.width, packed.count, CM, 1);
    return {
      kind: packed.kind, junction: packed.junction, points,
      left: { points: border(points, widths, 1), marking: packed.left },
      right: { points: border(points, widths, -1), marking: packed.right },
    };
  };

  // The document as what can be drawn; throws on another format.
  const read = (document) => {
    if (!document || document.format !== "swerve-drive/1") {
      throw new Error(`expected a drive of the format swerve-drive/1, found ${document && document.format}`);
    }
    const map = document.map;
    return {
      document,
      lanes: map.lanes.map(lane),
      drivable: map.drivable.map(line),
      crosswalks: map.crosswalks.map(line),
      surfaces: map.surfaces.map(line),
      signals: map.signals || [],
      goal: document.ego.goal || null,
      goalArea: document.ego.goal_area ? line(document.ego.goal_area) : null,
      rollouts: document.rollouts,
    };
  };

  // ---- boxes ----

  const box = (x, y, heading, length, width) => ({
    x, y, cos: Math.cos(heading), sin: Math.sin(heading), l: length / 2, w: width / 2,
  });

  // Gaps that the axes of box a leave between a and b (negative: they overlap there): along, across.
  const apart = (a, b) => {
    const dx = b.x - a.x;
    const dy = b.y - a.y;
    const c = Math.abs(a.cos * b.cos + a.sin * b.sin);
    const s = Math.abs(a.cos * b.sin - a.sin * b.cos);
    return [Math.abs(dx * a.cos + dy * a.sin) - (a.l + b.l * c + b.w * s),
      Math.abs(dy * a.cos - dx * a.sin) - (a.w + b.l * s + b.w * c)];
  };

  // From the nearest corner of b to box a.
  const cornerGap = (a, b) => {
    let best = Infinity;
    for (const [u, v] of [[1, 1], [1, -1], [-1, 1], [-1, -1]]) {
      const dx = b.x + u * b.l * b.cos - v * b.w * b.sin - a.x;
      const dy = b.y + u * b.l * b.sin + v * b.w * b.cos - a.y;
      const along = Math.max(Math.abs(dx * a.cos + dy * a.sin) - a.l, 0);
      const across = Math.max(Math.abs(dy * a.cos - dx * a.sin) - a.w, 0);
      best = Math.min(best, Math.hypot(along, across));
    }
    return best;
  };

  // Metres between two boxes, 0 when they touch.
  const gap = (a, b) => {
    const axes = [...apart(a, b), ...apart(b, a)];
    return Math.max(...axes) <= 0 ? 0 : Math.min(cornerGap(a, b), cornerGap(b, a));
  };

  // Seconds until they touch when both go on as they do, in steps of 0.1 s up to 3 s; Infinity: they do not.
  const timeToTouch = (a, av, b, bv) => {
    let low = 0.1;
    let high = TTC_HORIZON_S;
    for (const [p, q] of [[a, b], [b, a]]) {
      const c = Math.abs(p.cos * q.cos + p.sin * q.sin);
      const s = Math.abs(p.cos * q.sin - p.sin * q.cos);
      const dx = b.x - a.x;
      const dy = b.y - a.y;
      const vx = bv * b.cos - av * a.cos;
      const vy = bv * b.sin - av * a.sin;
      for (const [start, rate, reach] of [
        [dx * p.cos + dy * p.sin, vx * p.cos + vy * p.sin, p.l + q.l * c + q.w * s],
        [dy * p.cos - dx * p.sin, vy * p.cos - vx * p.sin, p.w + q.l * s + q.w * c],
      ]) {
        if (rate === 0) {
          if (Math.abs(start) > reach) return Infinity;
          continue;
        }
        const t0 = (-reach - start) / rate;
        const t1 = (reach - start) / rate;
        low = Math.max(low, Math.min(t0, t1));
        high = Math.min(high, Math.max(t0, t1));
      }
    }
    const step = Math.ceil(low * 10 - 1e-9) / 10;
    return step <= high + 1e-9 ? step : Infinity;
  };

  // Agents within 30 degrees of straight behind ego are its followers: their time to collision is theirs.
  const isBehind = (ego, agent) => {
    const dx = agent.x - ego.x;
    const dy = agent.y - ego.y;
    return dx * ego.cos + dy * ego.sin < -0.866 * Math.hypot(dx, dy);
  };

  // ---- tracks ----

  // The rollouts that it runs through, the first one first, each until the next begins.
  const lineage = (drive, rollout) => {
    const byNumber = new Map(drive.rollouts.map((one) => [one.rollout, one]));
    const chain = [];
    for (let at = rollout; at; at = byNumber.get(at.parent)) chain.unshift(at);
    return chain.map((one, i) => ({
      one,
      end: i + 1 < chain.length ? Math.min(one.first_tick + one.ticks, chain[i + 1].first_tick)
        : one.first_tick + one.ticks,
    })).filter(({ one, end }) => end > one.first_tick);
  };

  const mark = (runs, flags, from, end) => {
    for (const [first, last] of runs) flags.fill(1, Math.max(first, from), Math.min(last + 1, end));
  };

  const place = (columns, units, one, end, into) => {
    for (const [key, [unit, order]] of Object.entries(units)) {
      const values = unpack(columns[key], one.ticks, unit, order);
      into[key].set(values.subarray(0, end - one.first_tick), one.first_tick);
    }
  };

  const empty = (units, count) => {
    const columns = {};
    for (const key of Object.keys(units)) columns[key] = new Float64Array(count);
    return columns;
  };

  const measure = (drive, track) => {
    const sizes = drive.document.agents;
    const size = drive.document.ego;
    for (let t = 0; t < track.count; t++) {
      const ego = box(track.ego.x[t], track.ego.y[t], track.ego.heading[t], size.length_m, size.width_m);
      track.gap[t] = Infinity;
      track.ttc[t] = Infinity;
      track.nearest[t] = -1;
      for (const agent of track.agents) {
        if (!agent.present[t]) continue;
        const other = box(agent.x[t], agent.y[t], agent.heading[t], sizes[agent.agent].length_m,
          sizes[agent.agent].width_m);
        const metres = gap(ego, other);
        if (metres < track.gap[t]) {
          track.gap[t] = metres;
          track.nearest[t] = agent.agent;
        }
        if (track.ego.speed[t] > 0.005 && !isBehind(ego, other)) {
          const seconds = metres === 0 ? 0 : timeToTouch(ego, track.ego.speed[t], other, agent.speed[t]);
          track.ttc[t] = Math.min(track.ttc[t], seconds);
        }
      }
    }
  };

  const plain = (name) => name.replaceAll("_", " ");

  const events = (drive, track, chain) => {
    const list = [];
    let weatherBefore = "";
    const name = (agent) => (agent >= 0 && drive.document.agents[agent] ? drive.document.agents[agent].id : "");
    chain.forEach(({ one, end }, i) => {
      const put = (tick, kind, text, last = tick) => {
        if (tick < end || i + 1 === chain.length) list.push({ tick, last, kind, text });
      };
      if (one.first_tick > 0) put(one.first_tick, "fork", `branch ${one.branch} forks`);
      for (const what of one.interventions) {
        put(what.tick, "intervention", `${plain(what.kind)} ${name(what.agent)}`.trim());
      }
      for (const [first, last] of one.guardian) put(first, "guardian", "guardian would override", last);
      for (const [first, last] of one.sensors_dark) put(first, "dark", "a sensor is dark", last);
      for (const [tick, weather, light, friction, visibility] of one.conditions.filter(([at]) => at < end)) {
        const words = `${plain(weather)}, ${light}, friction ${friction}, visibility ${visibility} m`;
        if (weatherBefore !== "" && words !== weatherBefore) put(tick, "conditions", words);
        weatherBefore = words;
      }
    });
    const rollout = track.rollout;
    const passed = new Map(chain.map(({ one, end }) => [one.rollout, end]));
    for (const branch of drive.rollouts) { // what forks from here
      if (!passed.has(branch.rollout) && branch.first_tick < (passed.get(branch.parent) || 0)) {
        list.push({ tick: branch.first_tick, last: branch.first_tick, kind: "fork",
          text: `branch ${branch.branch} forks${branch.verdict ? `: ${plain(branch.verdict)}` : ""}` });
      }
    }
    if (rollout.contact) {
      const { tick, agent, kind, at_fault: fault, impact_mps: impact } = rollout.contact;
      list.push({ tick, last: tick, kind: "contact",
        text: `contact (${plain(kind)}) with ${name(agent) || "something"}` +
          `${impact === null ? "" : `, ${impact.toFixed(1)} m/s`}${fault ? ", at fault" : ""}` });
    }
    if (rollout.flag) {
      list.push({ tick: rollout.flag.tick, last: rollout.flag.tick, kind: "flag", text: `flagged: ${rollout.flag.check}` });
    }
    list.push({ tick: track.count - 1, last: track.count - 1, kind: "end",
      text: rollout.verdict ? `end: ${[plain(rollout.verdict), ...rollout.reasons.map(plain)].join(", ")}` : "end" });
    // Notes that both a parent and its branch made at the fork are told once.
    const told = new Set();
    return list.filter((one) => {
      const key = `${one.kind} ${one.tick} ${one.text}`;
      return one.tick < track.count && !told.has(key) && told.add(key);
    }).sort((a, b) => a.tick - b.tick);
  };

  // Aspect of each signal at a tick, "" where it is not known.
  const lightsAt = (track, at) => {
    if (track.drive.signals.length === 0) return [];
    const chain = lineage(track.drive, track.rollout);
    const link = chain.find(({ end }) => at < end) || chain[chain.length - 1];
    const signals = (link && link.one.signals) || [];
    return track.drive.signals.map((_, i) => (signals[i] || [])
      .reduce((shown, [tick, light]) => (tick <= at ? light : shown), ""));
  };

  // One rollout from tick 0 on.
  const trackOf = (drive, rollout) => {
    const chain = lineage(drive, rollout);
    const count = Math.max(...chain.map(({ end }) => end), 1);
    const track = {
      drive, rollout, count,
      ego: empty(EGO_UNITS, count),
      agents: [],
      guardian: new Uint8Array(count),
      dark: new Uint8Array(count),
      gap: new Float64Array(count), ttc: new Float64Array(count), nearest: new Int32Array(count),
      frames: [],
      plans: new Map(), perceived: new Map(), // by tick: what the planner meant and was given, from ego's place
    };
    const agents = new Map();
    for (const { one, end } of chain) {
      place(one.ego, EGO_UNITS, one, end, track.ego);
      mark(one.guardian, track.guardian, one.first_tick, end);
      mark(one.sensors_dark, track.dark, one.first_tick, end);
      for (const packed of one.agents) {
        if (!agents.has(packed.agent)) {
          agents.set(packed.agent, { agent: packed.agent, present: new Uint8Array(count), ...empty(AGENT_UNITS, count) });
        }
        const agent = agents.get(packed.agent);
        place(packed, AGENT_UNITS, one, end, agent);
        mark(packed.present, agent.present, one.first_tick, end);
      }
      for (const [tick, ...points] of one.plans || []) if (tick < end) track.plans.set(tick, points.map((value) => value * CM));
      for (const [tick, ...boxes] of one.perceived || []) {
        if (tick < end) {
          track.perceived.set(tick, boxes.map(([x, y, heading, length, width]) => ({
            x: x * CM, y: y * CM, heading: heading * MILLI, length_m: length * CM, width_m: width * CM })));
        }
      }
      track.frames.push(...(one.frames || []).filter((frame) => frame.tick < end));
    }
    // Behind the last tick nobody drives on: no action is asked for there, which is recorded as zeros.
    for (const name of ["action_accel", "action_steer"]) track.ego[name][count - 1] = NaN;
    track.generated = chain.some(({ one }) => one.generated);
    track.agents = [...agents.values()];
    measure(drive, track);
    track.events = events(drive, track, chain);
    return track;
  };

  // When it was decided and against whom: the first contact, the lowest TTC, else the smallest gap.
  const momentOf = (track) => {
    const contact = track.rollout.contact;
    if (contact && contact.tick < track.count) return { tick: contact.tick, agent: contact.agent };
    const least = (values) => values.reduce((best, value, t) => (value < values[best] ? t : best), 0);
    const tick = least(Number.isFinite(Math.min(...track.ttc)) ? track.ttc : track.gap);
    return { tick, agent: track.nearest[tick] };
  };

  // The rollout of an outcome, else of the main line.
  const find = (drive, outcome) =>
    drive.rollouts.find((one) => one.outcome === outcome) || drive.rollouts.find((one) => one.branch === "") ||
    drive.rollouts[0];

  return { read, trackOf, momentOf, lightsAt, find, gap, box, timeToTouch, unpack, plain };
})();
