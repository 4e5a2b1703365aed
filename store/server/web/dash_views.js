/*
 * The dashboard's views: all suites, one suite, one rollout, workers (trust: dash_trust.js). Each asks
 * the API for a page at a time and returns what to do when news come and when it is left.
 */
import {el, get, told, renewer, suiteLink, page} from './dash.js';
import {count, words, names, breakable, percent, unseen, lacking, rateText, when, table, tile, pager} from './dash_parts.js';
import {trustTile} from './dash_trust.js';

const VERDICTS = ['pass', 'fail', 'planner_error', 'flagged', 'invalid'];
const FAILED = ['fail', 'planner_error'];
const JOB_STATES = ['queued', 'leased', 'done', 'flagged', 'dead', 'cancelled'];
const SLICE_KINDS = ['weather', 'light', 'road', 'geography', 'actor', 'scenario_type'];
const PAGE_ROWS = 50;
const COUNTED_PAGES_MAX = 200; /* of slices: two million outcomes */
const FAILURE_ROWS = 10;
const CENT_UUSD = 10000;

/* ---- words and numbers ---- */

function money(uusd) {
  const usd = uusd / 1e6;
  if (usd === 0) return '$0';
  return '$' + (uusd >= CENT_UUSD ? usd.toFixed(2) : usd.toFixed(6));
}

/* In cents: the table of the cost has fractions. */
const roundMoney = (uusd) => (uusd > 0 && uusd < CENT_UUSD ? '< $0.01' : money(uusd));

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
const rateTitle = (m) => count(m.scenarios) + ' scenarios, ' + count(m.logical) + ' logical' + (lacking(m) ?
  '; without a result: ' + count(m.verdicts.flagged || 0) + ' flagged, ' + count(m.verdicts.invalid || 0) + ' invalid, ' + count(m.no_answer) + ' unanswered, ' +
  count(m.cancelled || 0) + ' cancelled, ' + count(m.waiting || 0) + ' not finished' : '');

function rateCell(suite) {
  const worlds = worldsOf(suite);
  if (!worlds.length) return '\u2013';
  return worlds.flatMap(([world, m], i) => [i ? el('br') : '', el('span', {title: world + ': ' + rateTitle(m)},
    (worlds.length > 1 ? world + ' ' : '') + rateText(m))]);
}

/* Main lines of all worlds that were judged and did not pass. */
const failedOf = (suite) => worldsOf(suite).reduce((n, [, m]) => FAILED.reduce((k, v) => k + (m.verdicts[v] || 0), n), 0);

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
    done: byTick ? (suite.ticks_ended || 0) + (suite.ticks_running || 0) : total - open(suite.jobs),
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

const trendLink = (query) => '#/trend?' + new URLSearchParams(query);

/* Labels of a run: names that it is the baseline of, tags, the note. */
function labels(suite) {
  return [
    suite.baselines && el('span', {class: 'note'}, 'baseline ' + suite.baselines + ' '),
    names(suite.tags).map((tag) => [el('a', {href: trendLink({tag})}, tag), ' ']),
    suite.note && el('span', {class: 'soft'}, suite.note),
  ];
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
  ['Suite', 'suite', (s) => [el('a', {href: suiteLink(s.suite)}, breakable(s.suite)), el('div', {class: 'small'}, labels(s))]],
  ['Failed', 'n', (s) => (failedOf(s) ? el('a', {class: 'fail', href: suiteLink(s.suite)}, count(failedOf(s))) : worldsOf(s).length ? '0' : '\u2013')],
  ['Main lines pass', 'n', rateCell],
  ['Planner', 'planner', plannersOf],
  ['Verdicts', 'bars', (s) => verdictBar(s.rollouts, s.rollouts_total)],
  ['Rollouts', 'n', (s) => count(sum(s.rollouts)) + ' / ' + count(s.rollouts_total)],
  ['Progress', 'bars', progressCell],
  ['ETA', 'n', (s) => (open(s.jobs) ? duration(etaOf(s)) : '\u2013')],
  ['Cost', 'n', (s) => roundMoney(s.cost_uusd)],
  ['Submitted', 'nowrap', (s) => when(s.submitted_s)],
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
      el('p', {class: 'small'}, el('a', {href: '#/trend'}, 'Trend of the rate over runs')),
      ...(data.pools.length > 1 ? [el('h2', {}, 'Pools'), poolCards(data)] : []));
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

/* Conclusion of a suite in a sentence. */
function conclusion(status) {
  const failed = failedOf(status);
  const unknown = worldsOf(status).reduce((n, [, m]) => n + lacking(m), 0);
  const mains = worldsOf(status).reduce((n, [, m]) => n + sum(m.verdicts) + unseen(m), 0);
  if (!mains) return el('p', {}, 'No main line has ended yet, or the suite has several planners: see their rates below.');
  return el('p', {id: 'conclusion'}, el('b', {class: failed ? 'fail' : 'pass'}, failed ? `${count(failed)} of ${count(mains)} main lines failed` :
    unknown ? 'No main line failed' : `All ${count(mains)} main lines pass`),
  unknown > 0 && [', ', el('span', {class: 'note'}, count(unknown) + ' have no result')],
  open(status.jobs) > 0 && `; ${count(open(status.jobs))} jobs are open`, '.');
}

function suiteHead(suite, status) {
  const p = progressOf(status);
  return [
    el('h1', {}, suite),
    conclusion(status),
    el('p', {class: 'small'}, plannersOf(status), el('span', {class: 'soft'}, ', submitted ', when(status.submitted_s), ' '),
      status.planner_count === 1 && el('a', {href: trendLink({planner: status.planner})}, 'trend')),
    el('p', {class: 'small'}, labels(status), status.commit && el('span', {class: 'soft'}, ' commit ' + status.commit)),
    el('div', {class: 'tiles'},
      ...worldsOf(status).map(([world, m]) => tile(rateText(m), 'of main lines pass in the ' + world + ' world; ' + rateTitle(m))),
      tile(count(sum(status.rollouts)) + ' / ' + count(status.rollouts_total), 'rollouts, branches included'),
      open(status.jobs) > 0 && tile(percent(p.done, p.of), p.byTick ? 'of planned ticks' : 'of jobs'),
      open(status.jobs) > 0 && tile(duration(etaOf(status)), 'to go'),
      status.cost_uusd >= CENT_UUSD && tile(money(status.cost_uusd), 'spent, failed attempts too' + (status.budget_uusd ? ', of a budget of ' + money(status.budget_uusd) : '')),
      tile((status.metres_mm / 1609344).toFixed(2), 'miles driven')),
    bar(VERDICTS.map((v) => [v, status.rollouts[v]]), status.rollouts_total, 'verdicts'),
    el('p', {class: 'small'}, VERDICTS.filter((v) => status.rollouts[v]).map((v) =>
      [el('span', {class: v}, count(status.rollouts[v]) + ' ' + words(v)), ' ']), el('span', {class: 'soft'}, 'with branches')),
    status.stopped_by_budget && el('p', {class: 'bad'}, `Budget of ${money(status.budget_uusd)} spent: ${count(status.jobs.cancelled)} jobs are cancelled.`),
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

const sliceLink = (suite, s) => el('a', {href: suiteLink(suite, {slice: s.kind + ':' + s.value})}, breakable(words(s.kind) + ': ' + s.value));

/* Columns that are nothing but zeros are left out. */
function sliceColumns(suite, rows) {
  const has = (counted) => rows.some((s) => counted(s) > 0);
  const verdict = (name) => has((s) => s.rollouts[name]) && [words(name).replace(/^./, (c) => c.toUpperCase()), 'n',
    (s) => count(s.rollouts[name])];
  return [
    ['Slice', 'suite', (s) => (s.kind ? sliceLink(suite, s) : el('b', {}, 'all'))],
    ['Verdicts', 'bars', (s) => verdictBar(s.rollouts, sum(s.rollouts))],
    ['Main lines', 'n', (s) => count(sum(s.rollouts))],
    ['Pass', 'n', (s) => percent(s.rollouts.pass, judged(s.rollouts))],
    ...['fail', 'planner_error', 'flagged', 'invalid'].map(verdict),
    has((s) => sum(s.branches)) && ['Branches', 'n', (s) => count(sum(s.branches))],
    ...(has((s) => s.audited) ? [['Audited', 'n', (s) => count(s.audited)], ['Agree', 'n', (s) => percent(s.agreed, s.audited)]] : []),
  ].filter(Boolean);
}

/* A card for each planner and world: within a kind the weakest first, those that pass in full folded away. A
 * kind with one value, which says what the total says, stands in a line. */
function sliceTables(suite, counted) {
  const sets = [...new Set([...counted.values()].map((s) => JSON.stringify([s.planner, s.tier])))].sort().map((text) => JSON.parse(text));
  const order = ['', ...SLICE_KINDS];
  const passing = (s) => (judged(s.rollouts) ? (s.rollouts.pass || 0) / judged(s.rollouts) : 2);
  return sets.map(([planner, tier]) => {
    const all = [...counted.values()].filter((s) => s.planner === planner && s.tier === tier)
      .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || passing(a) - passing(b) || (a.value < b.value ? -1 : 1));
    const total = all.find((s) => !s.kind);
    const single = all.filter((s) => s.kind && total && all.filter((other) => other.kind === s.kind).length === 1 &&
      sum(s.rollouts) === sum(total.rollouts));
    const whole = all.filter((s) => s !== total && !single.includes(s) && s.rollouts.pass === sum(s.rollouts));
    const rows = all.filter((s) => !single.includes(s) && !whole.includes(s));
    return el('div', {class: 'card'},
      sets.length > 1 && el('p', {class: 'mono'}, planner + ', ' + tier + ' world'),
      table(sliceColumns(suite, rows), rows, 'No outcomes yet.'),
      whole.length > 0 && el('details', {}, el('summary', {}, count(whole.length) + (whole.length === 1 ? ' slice passes' : ' slices pass') + ' in full'),
        table(sliceColumns(suite, whole), whole, '')),
      single.length > 0 && el('p', {class: 'soft small'}, 'All of them: ', single.map((s, i) => [i ? ', ' : '', sliceLink(suite, s)]), '.'));
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

const FILTERS = ['verdict', 'slice', 'scenario', 'branches'];
const wantedOf = (query) => Object.fromEntries(FILTERS.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));

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
    for (const name of FILTERS) {
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
  ['Rollout', 'suite', (o) => el('a', {href: '#/outcome/' + o.id}, breakable(o.scenario_id + (o.branch_id ? ' \u2192 ' + o.branch_id : '')))],
  ['Seed', 'n', (o) => String(o.seed)],
  ['Verdict', 'nowrap', (o) => el('span', {class: o.verdict}, words(o.verdict))],
  ['Reasons', 'words', (o) => o.reasons.map(words).join(', ') || o.health_check || o.error.split('\n')[0].slice(0, 120)],
  ['World', '', (o) => o.tier],
  ['Score', 'n', (o) => number(o.metrics.score, 2)],
  ['TTC', 'n', (o) => number(o.metrics.min_ttc_s, 2, 's')],
  ['Gap', 'n', (o) => number(o.metrics.min_distance_m, 2, 'm')],
  ['Ticks', 'n', (o) => count(o.ticks)],
];

/* One page of rollouts; an answer that looked at many and found few goes on by itself. */
async function rolloutPage(context, suite, wanted, after, most) {
  const query = new URLSearchParams({suite, ...wanted});
  const rows = [];
  let next = after;
  while (rows.length < most && next !== null) {
    query.set('after', String(next));
    query.set('limit', String(most - rows.length));
    const data = await get('v1/outcomes?' + query, context.signal);
    const full = data.outcomes.length === most - rows.length;
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
      const {rows, next} = await rolloutPage(context, suite, wantedOf(context.query), after, PAGE_ROWS);
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

/* The first main lines that failed, and the way to all of them. */
async function drawFailures(context, suite, status, place) {
  if (!failedOf(status) && worldsOf(status).length > 0) return;
  const failed = [];
  for (const verdict of FAILED) {
    if (failed.length < FAILURE_ROWS) {
      failed.push(...(await rolloutPage(context, suite, {verdict, branches: 'no'}, 0, FAILURE_ROWS - failed.length)).rows);
    }
  }
  if (failed.length === 0) return;
  const all = FAILED.filter((v) => worldsOf(status).length === 0 || worldsOf(status).some(([, m]) => m.verdicts[v]));
  place.replaceChildren(el('h2', {id: 'failures'}, 'Failures'), el('div', {class: 'card'}, table(outcomeColumns, failed, ''),
    failed.length === FAILURE_ROWS && el('p', {class: 'small'}, 'The first ', count(failed.length), ' main lines. All that ended with ',
      all.map((v, i) => [i ? ', ' : '', el('a', {href: suiteLink(suite, {verdict: v, branches: 'no'})}, words(v))]), '.')));
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
  const failures = el('div');
  const slices = el('div', {}, el('p', {class: 'soft'}, 'Counting ..'));
  const rollouts = el('div', {class: 'card'});
  const dead = el('div');
  const ledger = el('div', {class: 'card'});
  const fetchStatus = () => get('v1/suites/' + encodeURIComponent(suite), context.signal);
  const status = await fetchStatus();
  let seen = JSON.stringify([status.jobs, status.rollouts]);
  page.path([[suite, suiteLink(suite)]]);
  head.replaceChildren(...suiteHead(suite, status).filter(Boolean));
  /* Who filters has asked for rollouts. */
  const list = [el('h2', {}, 'Rollouts'), filterForm(suite, context.query), rollouts];
  const sums = [el('h2', {}, 'Slices'), slices];
  const filtered = Object.keys(wantedOf(context.query)).length > 0;
  context.main.replaceChildren(head, mains, ...(filtered ? list : [failures, ...sums]), ...(filtered ? sums : list), dead, el('h2', {}, 'Cost'), ledger);
  await Promise.all([
    filtered ? null : drawFailures(context, suite, status, failures).catch((e) => told(e, failures)),
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
  const world = /\/(exact|varies)$/.test(o.sampler) ? ' --world SPEC' : ''; // of the user's, which the store does not name
  return [`swerve replay ${o.id} --store ${store}${world}`, `swerve show ${o.id} --store ${store}`, `swerve debug ${o.id} --store ${store}${world}`];
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
    o.audit_of && [o.futures ? 'futures of job' : 'repeats job', String(o.audit_of) + (o.shadow ? ', as a shadow: it counts nowhere' : '')], o.parent_job_id && ['replaces job', String(o.parent_job_id)],
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
  const frames = (outcome, tick) => get(`v1/outcomes/${outcome}/frames/${tick}`, context.signal);
  const player = SwervePlayer.create(stage, {others, frames});
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
