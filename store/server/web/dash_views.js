/*
 * The dashboard's views: all suites, one suite, one rollout, workers (trust: dash_trust.js). Each asks
 * the API for a page at a time and returns what to do when news come and when it is left.
 */
import {el, get, told, renewer, suiteLink, page} from './dash.js';
import {count, words, percent, when, table, tile, pager} from './dash_parts.js';
import {trustTile} from './dash_trust.js';

const VERDICTS = ['pass', 'fail', 'planner_error', 'flagged', 'invalid'];
const JOB_STATES = ['queued', 'leased', 'done', 'flagged', 'dead', 'cancelled'];
const SLICE_KINDS = ['weather', 'light', 'road', 'geography', 'actor', 'scenario_type'];
const PAGE_ROWS = 50;
const COUNTED_PAGES_MAX = 200; /* of slices: two million outcomes */

/* ---- words and numbers ---- */

function money(uusd) {
  const usd = uusd / 1e6;
  if (usd === 0) return '$0';
  return '$' + (usd >= 0.01 ? usd.toFixed(2) : usd.toFixed(6));
}

function duration(s) {
  if (s === null || s === undefined) return '\u2013';
  if (s < 100) return Math.ceil(s) + ' s';
  if (s < 6000) return Math.ceil(s / 60) + ' min';
  return (s / 3600).toFixed(s < 36000 ? 1 : 0) + ' h';
}

/* A metric: numbers come as numbers, null for none, "inf" and "-inf" as text. */
function number(value, digits, unit) {
  if (value === null || value === undefined) return '\u2013';
  if (typeof value !== 'number') return String(value);
  return value.toFixed(digits) + (unit ? ' ' + unit : '');
}

const sum = (counts) => Object.values(counts || {}).reduce((a, b) => a + b, 0);
/* Main lines of a suite, worlds apart: [[world, counts], ..]. */
const worldsOf = (suite) => Object.entries(suite.mains);
const lacking = (m) => (m.verdicts.flagged || 0) + (m.verdicts.invalid || 0) + m.no_answer;
const share = (rate) => (rate === null || rate === undefined ? '\u2013' : (100 * rate).toFixed(1) + '%');

/* A rate, beside its range where main lines have no result. */
const rateText = (m) => share(m.rate) + (lacking(m) ? ' [' + share(m.worst) + ' to ' + share(m.best) + ']' : '');
const rateTitle = (m) => count(m.scenarios) + ' scenarios, ' + count(m.logical) + ' logical' + (lacking(m) ?
  '; without a result: ' + count(m.verdicts.flagged || 0) + ' flagged, ' + count(m.verdicts.invalid || 0) + ' invalid, ' + count(m.no_answer) + ' unanswered' : '');

function rateCell(suite) {
  const worlds = worldsOf(suite);
  if (!worlds.length) return '\u2013';
  return worlds.flatMap(([world, m], i) => [i ? el('br') : '', el('span', {title: world + ': ' + rateTitle(m)},
    (worlds.length > 1 ? world + ' ' : '') + rateText(m))]);
}

const judged = (counts) => (counts.pass || 0) + (counts.fail || 0) + (counts.planner_error || 0);
const open = (jobs) => (jobs.queued || 0) + (jobs.leased || 0);

/* ---- parts ---- */

/* Parts of a whole as one bar. Widths are attributes of an SVG: the page's policy allows no style. */
function bar(parts, total, label) {
  const ns = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('viewBox', '0 0 1000 9');
  svg.setAttribute('preserveAspectRatio', 'none');
  let x = 0;
  for (const [name, value] of parts) {
    if (!(value > 0) || !(total > 0)) continue;
    const rect = document.createElementNS(ns, 'rect');
    const width = 1000 * Math.min(1, value / total);
    rect.setAttribute('class', name);
    rect.setAttribute('x', x);
    rect.setAttribute('width', width);
    rect.setAttribute('height', 9);
    svg.append(rect);
    x += width;
  }
  return el('div', {class: 'bar', role: 'img', 'aria-label': label, title: label}, svg);
}

const verdictBar = (counts, total) =>
  bar(VERDICTS.map((v) => [v, counts[v]]), total,
    VERDICTS.filter((v) => counts[v]).map((v) => count(counts[v]) + ' ' + words(v)).join(', ') || 'nothing yet');

/* ---- all suites ---- */

function progressOf(suite) {
  const total = sum(suite.jobs);
  const byTick = suite.ticks_planned > 0;
  return {
    byTick, total,
    done: byTick ? suite.ticks_ended || 0 : total - open(suite.jobs),
    of: byTick ? suite.ticks_planned : total,
  };
}

const etaOf = (suite) => (suite.eta_ms === -1 ? null : (suite.eta_ms || 0) / 1000);

function plannersOf(suite) {
  const more = (suite.planner_count || 0) - 1;
  return [el('span', {class: 'mono'}, suite.planner || ''), more > 0 && el('span', {class: 'soft'}, ` and ${more} more`)];
}

function progressCell(suite) {
  const p = progressOf(suite);
  const label = percent(p.done, p.of) + (p.byTick ? ' of ticks' : ' of jobs');
  return el('div', {}, bar([['ticks', p.done]], p.of, label), el('span', {class: 'small soft'}, label));
}

function notes(suite) {
  const list = [];
  if (suite.jobs.dead) list.push(el('span', {class: 'bad'}, count(suite.jobs.dead) + ' dead'));
  if (suite.rollouts.flagged) list.push(el('span', {class: 'note'}, count(suite.rollouts.flagged) + ' flagged'));
  if (suite.jobs.cancelled) list.push(el('span', {class: 'soft'}, count(suite.jobs.cancelled) + ' cancelled'));
  if (suite.unstarted_hosts) list.push(el('span', {class: 'bad', title: suite.unstarted}, 'planner does not start'));
  return list.flatMap((item, i) => (i ? [', ', item] : [item]));
}

const suiteColumns = [
  ['Suite', 'suite', (s) => el('a', {href: suiteLink(s.suite)}, s.suite)],
  ['Planner', 'planner', plannersOf],
  ['Submitted', 'nowrap', (s) => when(s.submitted_s)],
  ['Progress', '', progressCell],
  ['Verdicts', '', (s) => verdictBar(s.rollouts, s.rollouts_total)],
  ['Main lines pass', 'n', rateCell],
  ['Rollouts', 'n', (s) => count(sum(s.rollouts)) + ' / ' + count(s.rollouts_total)],
  ['Cost', 'n', (s) => money(s.cost_uusd)],
  ['ETA', 'n', (s) => (open(s.jobs) ? duration(etaOf(s)) : '\u2013')],
  ['', 'words', notes],
];

function poolCards(data) {
  return el('div', {class: 'card'}, table([
    ['Pool', '', (p) => p.pool],
    ...JOB_STATES.map((state) => [words(state), 'n', (p) => count(p.jobs[state])]),
  ], data.pools, 'No jobs yet.'));
}

function storeTiles(data, trust) {
  const of = (state) => data.pools.reduce((n, p) => n + (p.jobs[state] || 0), 0);
  return el('div', {class: 'tiles'},
    tile(el('a', {href: '#/workers'}, count(data.workers)), 'workers alive'),
    tile(count(of('leased')), 'jobs running'), tile(count(of('queued')), 'jobs queued'),
    tile(count(of('done')), 'jobs done'), tile(count(of('flagged')), 'flagged'),
    tile(count(of('dead')), 'dead'), trust,
    data.commits_lost > 0 && tile(count(data.commits_lost), 'commits lost to damaged logs'));
}

export async function overviewView(context) {
  const after = context.query.get('after') || '';
  const before = context.query.getAll('before');
  const trust = trustTile(context);
  const load = () => get('v1/overview' + (after ? '?after=' + encodeURIComponent(after) : ''), context.signal);
  const draw = (data) => {
    const go = (to) => {
      const back = to === data.next ? [...before, after] : before.slice(0, -1);
      const query = new URLSearchParams(back.map((b) => ['before', b]));
      if (to) query.append('after', to);
      location.hash = '#/?' + query;
    };
    context.main.replaceChildren(
      storeTiles(data, trust.tile),
      el('h2', {}, 'Suites'),
      el('div', {class: 'card'}, table(suiteColumns, data.suites, 'No suites yet: swerve submit SUITE --store ..')),
      pager(data.suites.length + (data.suites.length === 1 ? ' suite' : ' suites, newest first'), before.length ? before[before.length - 1] : null, data.next ?? null, go),
      el('h2', {}, 'Pools'), poolCards(data));
  };
  page.path([]);
  const fresh = page.news;
  draw(!after && fresh ? fresh : await load());
  const again = renewer(async () => {
    try { const data = await load(); if (context.current()) draw(data); } catch (e) { told(e, context.main); }
  });
  trust.ask();
  return {
    news(data) { trust.ask(); if (after) again.ask(); else draw(data); },
    dispose() { again.stop(); trust.stop(); },
  };
}

/* ---- workers ---- */

export async function workersView(context) {
  const after = context.query.get('after') || '';
  const draw = async () => {
    const data = await get('v1/workers?limit=100' + (after ? '&after=' + encodeURIComponent(after) : ''), context.signal);
    if (!context.current()) return;
    context.main.replaceChildren(el('h1', {}, 'Workers'), el('div', {class: 'card'}, table([
      ['Worker', 'suite', (w) => w.worker], ['Pool', '', (w) => w.pool || '\u2013'], ['Device', '', (w) => w.device || '\u2013'],
      ['Host', '', (w) => w.host || '\u2013'], ['Jobs', 'n', (w) => count(w.jobs)],
    ], data.workers, after ? 'No more workers.' : 'No worker is alive.')),
    pager(data.workers.length + ' workers with a live lease', after ? '' : null, data.next ?? null,
      (to) => { location.hash = to ? '#/workers?after=' + encodeURIComponent(to) : '#/workers'; }));
  };
  page.path([['workers', '#/workers']]);
  await draw();
  const again = renewer(() => draw().catch((e) => told(e, context.main)));
  return {news: again.ask, dispose: again.stop};
}

/* ---- a suite ---- */

function suiteHead(suite, status) {
  const p = progressOf(status);
  return [
    el('h1', {}, suite),
    el('div', {}, plannersOf(status)),
    el('div', {class: 'tiles'},
      ...worldsOf(status).map(([world, m]) => tile(rateText(m), 'of main lines pass in the ' + world + ' world; ' + rateTitle(m))),
      worldsOf(status).length === 0 && tile('\u2013', 'of main lines pass; by planner below'),
      tile(count(sum(status.rollouts)) + ' / ' + count(status.rollouts_total), 'rollouts, branches included'),
      tile(percent(p.done, p.of), p.byTick ? 'of planned ticks' : 'of jobs'),
      tile(open(status.jobs) ? duration(etaOf(status)) : 'done', open(status.jobs) ? 'to go' : 'no job is open'),
      tile(money(status.cost_uusd), 'spent, failed attempts too'),
      tile((status.metres_mm / 1609344).toFixed(2), 'miles driven'),
      tile(count(open(status.jobs)), 'jobs open'),
      tile(when(status.submitted_s), 'submitted')),
    bar(VERDICTS.map((v) => [v, status.rollouts[v]]), status.rollouts_total, 'verdicts'),
    el('p', {class: 'small'}, VERDICTS.filter((v) => status.rollouts[v]).map((v) =>
      [el('span', {class: v}, count(status.rollouts[v]) + ' ' + words(v)), ' '])),
    status.unstarted_hosts > 0 && el('p', {class: 'bad'}, 'A planner does not start on ' + status.unstarted_hosts + ' host(s): ' + status.unstarted),
  ];
}

/* Adds a page of slices to what was counted; planners and worlds stay apart. */
function addSlices(into, slices) {
  for (const s of slices) {
    const key = JSON.stringify([s.planner, s.tier, s.kind, s.value]);
    const sofar = into.get(key) || {planner: s.planner, tier: s.tier, kind: s.kind, value: s.value, rollouts: {}, branches: {}, audited: 0, agreed: 0};
    for (const v of VERDICTS) {
      sofar.rollouts[v] = (sofar.rollouts[v] || 0) + (s.rollouts[v] || 0);
      sofar.branches[v] = (sofar.branches[v] || 0) + (s.branches[v] || 0);
    }
    sofar.audited += s.audited;
    sofar.agreed += s.agreed;
    into.set(key, sofar);
  }
}

function sliceTables(suite, counted) {
  const sets = [...new Set([...counted.values()].map((s) => JSON.stringify([s.planner, s.tier])))].sort().map((text) => JSON.parse(text));
  const order = ['', ...SLICE_KINDS];
  const label = (s) => (s.kind ? el('a', {href: suiteLink(suite, {slice: s.kind + ':' + s.value})}, words(s.kind) + ': ' + s.value)
                               : el('b', {}, 'all'));
  return sets.map(([planner, tier]) => {
    const rows = [...counted.values()].filter((s) => s.planner === planner && s.tier === tier)
      .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || (a.value < b.value ? -1 : 1));
    return el('div', {class: 'card'},
      sets.length > 1 && el('p', {class: 'mono'}, planner + ', ' + tier + ' world'),
      table([
        ['Slice', 'suite', label],
        ['Verdicts', '', (s) => verdictBar(s.rollouts, sum(s.rollouts))],
        ['Main lines', 'n', (s) => count(sum(s.rollouts))],
        ['Pass', 'n', (s) => percent(s.rollouts.pass, judged(s.rollouts))],
        ['Fail', 'n', (s) => count(s.rollouts.fail)],
        ['Planner error', 'n', (s) => count(s.rollouts.planner_error)],
        ['Flagged', 'n', (s) => count(s.rollouts.flagged)],
        ['Invalid', 'n', (s) => count(s.rollouts.invalid)],
        ['Branches', 'n', (s) => count(sum(s.branches))],
        ['Audited', 'n', (s) => count(s.audited)],
        ['Agree', 'n', (s) => percent(s.agreed, s.audited)],
      ], rows, 'No outcomes yet.'));
  });
}

/* Counts the whole suite page by page; the table grows as the pages come. */
async function countSlices(context, suite, place) {
  const counted = new Map();
  let after = 0;
  for (let pages = 0; ; pages++) {
    const data = await get(`v1/suites/${encodeURIComponent(suite)}/slices?after=${after}`, context.signal);
    addSlices(counted, data.slices);
    if (!data.next || pages >= COUNTED_PAGES_MAX) {
      place.replaceChildren(...sliceTables(suite, counted),
        data.next ? el('p', {class: 'note'}, 'Counted over the first outcomes alone: the suite has more than this page counts.') : '');
      return;
    }
    place.replaceChildren(el('p', {class: 'soft'}, 'Counted so far: outcomes up to ' + count(data.next)), ...sliceTables(suite, counted));
    after = data.next;
  }
}

function filterForm(suite, query) {
  const field = (name) => query.get(name) || '';
  const option = (value, text, chosen) => el('option', {value, selected: value === chosen}, text);
  const form = el('form', {class: 'filter', 'aria-label': 'Filter of rollouts'},
    el('label', {}, 'Verdict', el('select', {name: 'verdict', 'data-key': '/'},
      option('', 'any', field('verdict')), VERDICTS.map((v) => option(v, words(v), field('verdict'))))),
    el('label', {}, 'Slice', el('input', {name: 'slice', value: field('slice'), placeholder: 'weather:fog', maxlength: 100})),
    el('label', {}, 'Scenario', el('input', {name: 'scenario', value: field('scenario'), maxlength: 63})),
    el('label', {}, 'Branches', el('select', {name: 'branches'}, option('', 'with', field('branches')), option('no', 'main lines', field('branches')))),
    el('button', {type: 'submit'}, 'Show'));
  const go = () => {
    const wanted = {};
    for (const name of ['verdict', 'slice', 'scenario', 'branches']) {
      const value = form.elements[name].value.trim();
      if (value) wanted[name] = value;
    }
    location.hash = suiteLink(suite, wanted).slice(1);
  };
  form.addEventListener('submit', (event) => { event.preventDefault(); go(); });
  form.addEventListener('change', (event) => { if (event.target.tagName === 'SELECT') go(); });
  return form;
}

const outcomeColumns = [
  ['Rollout', 'suite', (o) => el('a', {href: '#/outcome/' + o.id}, o.scenario_id + (o.branch_id ? ' \u2192 ' + o.branch_id : ''))],
  ['Seed', 'n', (o) => String(o.seed)],
  ['Verdict', 'nowrap', (o) => el('span', {class: o.verdict}, words(o.verdict))],
  ['Reasons', '', (o) => o.reasons.map(words).join(', ') || o.health_check || o.error.split('\n')[0].slice(0, 120)],
  ['World', '', (o) => o.tier],
  ['Score', 'n', (o) => number(o.metrics.score, 2)],
  ['TTC', 'n', (o) => number(o.metrics.min_ttc_s, 2, 's')],
  ['Gap', 'n', (o) => number(o.metrics.min_distance_m, 2, 'm')],
  ['Ticks', 'n', (o) => count(o.ticks)],
];

/* One page of rollouts; an answer that looked at many and found few goes on by itself. */
async function rolloutPage(context, suite, after) {
  const query = new URLSearchParams({suite, limit: String(PAGE_ROWS)});
  for (const name of ['verdict', 'slice', 'scenario', 'branches']) {
    if (context.query.get(name)) query.set(name, context.query.get(name));
  }
  const rows = [];
  let next = after;
  while (rows.length < PAGE_ROWS && next !== null) {
    query.set('after', String(next));
    query.set('limit', String(PAGE_ROWS - rows.length));
    const data = await get('v1/outcomes?' + query, context.signal);
    const full = data.outcomes.length === PAGE_ROWS - rows.length;
    rows.push(...data.outcomes);
    next = full ? rows[rows.length - 1].id : data.next ?? null;
  }
  return {rows, next};
}

async function drawRollouts(context, suite, place) {
  const before = [];
  const go = async (after) => {
    place.setAttribute('aria-busy', 'true');
    try {
      const {rows, next} = await rolloutPage(context, suite, after);
      place.replaceChildren(
        table(outcomeColumns, rows, 'No rollout fits.'),
        pager(count(rows.length) + ' rollouts' + (rows.length ? `, ${rows[0].id} to ${rows[rows.length - 1].id}` : ''),
          before.length ? before[before.length - 1] : null, next, (to) => {
            if (to === next) before.push(after); else before.pop();
            go(to);
          }));
    } catch (error) { told(error, place); }
    place.removeAttribute('aria-busy');
  };
  await go(0);
}

async function drawDead(context, suite, place) {
  const data = await get(`v1/suites/${encodeURIComponent(suite)}/dead?max=20`, context.signal);
  if (data.jobs.length === 0) return;
  place.replaceChildren(el('h2', {}, 'Dead jobs'), el('div', {class: 'card'}, table([
    ['Job', 'suite', (j) => j.spec.scenario_id], ['Seed', 'n', (j) => String(j.spec.seed)],
    ['Attempts', 'n', (j) => count(j.attempts)], ['Last error', '', (j) => j.error.split('\n')[0]],
  ], data.jobs, '')), data.jobs.length === 20 ? el('p', {class: 'soft'}, 'The first 20; swerve status lists all.') : '');
}

/* Suites of one planner have their rates in the head. */
async function drawMains(context, suite, status, place) {
  if ((status.planner_count || 0) < 2) return;
  const data = await get(`v1/suites/${encodeURIComponent(suite)}/mains`, context.signal);
  place.replaceChildren(el('h2', {}, 'Rates by planner'), el('div', {class: 'card'}, table([
    ['Planner', 'suite', (r) => el('span', {class: 'mono'}, r.planner)], ['World', '', (r) => r.tier],
    ['Main lines pass', 'n', (r) => el('span', {title: rateTitle(r.mains)}, rateText(r.mains))],
    ['Scenarios', 'n', (r) => count(r.mains.scenarios)], ['Logical', 'n', (r) => count(r.mains.logical)],
    ['Without a result', 'n', (r) => count(lacking(r.mains))],
  ], data.rows, 'No outcomes yet.')));
}

async function drawLedger(context, suite, place) {
  const data = await get('v1/ledger?suite=' + encodeURIComponent(suite), context.signal);
  place.replaceChildren(table([
    ['Pool', '', (r) => r.pool], ['World', '', (r) => r.tier + (r.audit ? ' (audit)' : '')], ['Device', '', (r) => r.device],
    ['Ended', '', (r) => r.end], ['Attempts', 'n', (r) => count(r.totals.attempts)],
    ['Device time', 'n', (r) => duration(r.totals.device_ns / 1e9)], ['Miles', 'n', (r) => (r.totals.metres_mm / 1609344).toFixed(2)],
    ['Cost', 'n', (r) => money(r.totals.cost_uusd)],
  ], data.rows, 'Nothing was charged yet.'));
}

export async function suiteView(context, suite) {
  const head = el('div');
  const mains = el('div');
  const slices = el('div', {}, el('p', {class: 'soft'}, 'Counting ..'));
  const rollouts = el('div', {class: 'card'});
  const dead = el('div');
  const ledger = el('div', {class: 'card'});
  const fetchStatus = () => get('v1/suites/' + encodeURIComponent(suite), context.signal);
  const status = await fetchStatus();
  let seen = JSON.stringify([status.jobs, status.rollouts]);
  page.path([[suite, suiteLink(suite)]]);
  head.replaceChildren(...suiteHead(suite, status).filter(Boolean));
  context.main.replaceChildren(head, mains, el('h2', {}, 'Rollouts'), filterForm(suite, context.query), rollouts,
    el('h2', {}, 'Slices'), slices, dead, el('h2', {}, 'Cost'), ledger);
  await Promise.all([
    drawRollouts(context, suite, rollouts),
    countSlices(context, suite, slices).catch((e) => told(e, slices)),
    drawMains(context, suite, status, mains).catch((e) => told(e, mains)),
    drawDead(context, suite, dead).catch((e) => told(e, dead)),
    drawLedger(context, suite, ledger).catch((e) => told(e, ledger)),
  ]);
  /* The head follows the news; the tables below stay as they are while somebody reads them. */
  const again = renewer(async () => {
    try {
      const now = await fetchStatus();
      const state = JSON.stringify([now.jobs, now.rollouts]);
      if (!context.current() || state === seen) return;
      seen = state;
      head.replaceChildren(...suiteHead(suite, now).filter(Boolean),
        el('button', {type: 'button', onclick: () => window.dispatchEvent(new HashChangeEvent('hashchange'))}, 'Renew the tables below'));
    } catch (e) { told(e, head); }
  });
  return {news: again.ask, dispose: again.stop};
}

/* ---- a rollout ---- */

function facts(pairs) {
  return el('dl', {}, pairs.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]));
}

function metricFacts(m) {
  const none = m.collision_kind === 'none' ? ['collision_tick', 'collision_agent', 'impact_speed_mps'] : [];
  const units = {min_ttc_s: 's', min_distance_m: 'm', impact_speed_mps: 'm/s', progress_m: 'm', distance_m: 'm',
    speed_max_mps: 'm/s', accel_min_mps2: 'm/s\u00b2', jerk_max_mps3: 'm/s\u00b3'};
  return facts(Object.entries(m).filter(([name]) => !none.includes(name)).map(([name, value]) => {
    const plain = words(name.replace(/_(s|m|mps|mps2|mps3)$/, ''));
    return [plain, typeof value === 'number' ? number(value, Number.isInteger(value) ? 0 : 3, units[name]) : value === null ? '\u2013' : words(value)];
  }));
}

function commands(o) {
  const store = location.origin;
  return [`swerve replay ${o.id} --store ${store}`, `swerve show ${o.id} --store ${store}`, `swerve debug ${o.id} --store ${store}`];
}


function rolloutFacts(o) {
  return facts([
    ['suite', el('a', {href: suiteLink(o.suite_id)}, o.suite_id)], ['scenario', o.scenario_id],
    ['branch', o.branch_id || 'main line'], ['seed', String(o.seed)], ['planner', el('span', {class: 'mono'}, o.planner)],
    ['world', [o.tier, o.sampler && ', ' + o.sampler, o.backend && ', ' + o.backend].filter(Boolean).join('')],
    ['pool', o.pool], ['came', o.at_ms ? when(o.at_ms / 1000) : 'at a time that the store did not keep'], ['ticks', count(o.ticks) + (o.prefix_ticks ? `, ${count(o.prefix_ticks)} of them shared` : '')],
    ...SLICE_KINDS.filter((k) => o.slices[k]).map((k) => [words(k),
      el('a', {href: suiteLink(o.suite_id, {slice: k + ':' + o.slices[k]})}, o.slices[k])]),
    ['safety critical', o.safety_critical ? 'yes' : 'no'],
    ['trace hash', el('span', {class: 'mono'}, o.trace_hash || '\u2013')],
    ['model hash', el('span', {class: 'mono'}, o.model_hash || '\u2013')],
    ['revision', el('span', {class: 'mono'}, o.revision)],
    o.audit_of && ['repeats job', String(o.audit_of) + (o.shadow ? ', as a shadow: it counts nowhere' : '')], o.parent_job_id && ['replaces job', String(o.parent_job_id)],
  ].filter(Boolean));
}

/* The drive of an outcome, played; further rollouts of its suite and scenario can be laid over it. */
async function play(context, o, stage) {
  const drive = await get(`v1/outcomes/${o.id}/drive`, context.signal);
  const alike = await get('v1/outcomes?' + new URLSearchParams({suite: o.suite_id, scenario: o.scenario_id, limit: '50'}), context.signal);
  const others = alike.outcomes.filter((b) => b.job_id !== o.job_id && b.branch_id === '').map((b) => ({
    outcome: b.id, label: `${b.planner}, ${b.tier} world, seed ${b.seed}`,
    load: () => get(`v1/outcomes/${b.id}/drive`, context.signal),
  }));
  const player = SwervePlayer.create(stage, {others});
  await player.show(drive, o.id);
  return player;
}

export async function outcomeView(context, text) {
  const id = /^[0-9]{1,18}$/.test(text) ? text : '0';
  const data = await get(`v1/outcomes?outcome=${id}&limit=1`, context.signal);
  if (data.outcomes.length === 0) throw new Error('The store has no outcome ' + text + '.');
  const o = data.outcomes[0];
  const family = await get(`v1/outcomes?job=${o.job_id}&limit=257`, context.signal);
  page.path([[o.suite_id, suiteLink(o.suite_id)], [o.scenario_id, '#/outcome/' + o.id]]);
  const stage = el('div', {id: 'stage'});
  context.main.replaceChildren(
    el('h1', {}, o.scenario_id + (o.branch_id ? ' \u2192 ' + o.branch_id : '')),
    el('p', {}, el('b', {class: o.verdict}, words(o.verdict)), o.reasons.length ? ': ' + o.reasons.map(words).join(', ') : '',
      o.health_check && el('span', {class: 'note'}, ` ${words(o.health_check)} at tick ${o.health_tick}: ${number(o.health_value, 3)}, bound ${number(o.health_threshold, 3)}`)),
    stage,
    o.error && el('div', {class: 'card'}, el('pre', {class: 'mono'}, o.error)),
    el('div', {class: 'columns'},
      el('div', {class: 'card'}, el('h2', {}, 'Rollout'), rolloutFacts(o)),
      el('div', {class: 'card'}, el('h2', {}, 'Metrics'), metricFacts(o.metrics)),
      el('div', {class: 'card'}, el('h2', {}, 'Commands'), commands(o).map((c) => el('pre', {class: 'mono'}, c)),
        family.outcomes.length > 1 && [el('h2', {}, 'Of the same job'), table([
          ['Rollout', 'suite', (b) => el('a', {href: '#/outcome/' + b.id, 'aria-current': b.id === o.id ? 'page' : false}, b.branch_id || 'main line')],
          ['Verdict', '', (b) => el('span', {class: b.verdict}, words(b.verdict))],
          ['Gap', 'n', (b) => number(b.metrics.min_distance_m, 2, 'm')],
        ], family.outcomes, '')])));
  let player = null;
  if (o.artifact_hash) {
    play(context, o, stage).then((made) => {
      if (context.current()) player = made; else made.destroy();
    }, (problem) => told(problem, stage));
  }
  return {dispose: () => player && player.destroy()};
}
