/*
 * The rate of a name, tag or planner over its runs, drawn and as a table. Runs are those of the newest
 * pages of suites; a line joins runs of one name by one planner with one rig in one world, and no others;
 * a bar at a point is the range in which the rate lies where main lines have no result.
 */
import {el, get, told, renewer, suiteLink, page} from './dash.js';
import {count, names, share, rateText, when, table} from './dash_parts.js';

const PAGES_MAX = 10;
const PAGE_SUITES = 100;
const WIDTH = 1000;
const HEIGHT = 240;
const LEFT = 46;      /* of the plot, for the percents */
const BOTTOM = 230;
const TOP = 12;
const COLOURS = 4;    /* .world0 and on; further lines have them again */

const NS = 'http://www.w3.org/2000/svg';

/* "nightly-78370180" is a run of "nightly". */
const isRunOf = (suite, name) => suite.startsWith(name + '-') && /^[0-9a-f]{8}(-.*)?$/.test(suite.slice(name.length + 1));

function isMeant(suite, wanted) {
  return (!wanted.name || isRunOf(suite.suite, wanted.name)) &&
    (!wanted.tag || names(suite.tags).includes(wanted.tag)) &&
    (!wanted.planner || suite.planner === wanted.planner || (wanted.planner.length >= 6 && (suite.planner_hash || '').startsWith(wanted.planner)));
}

/* Suites that are meant, oldest first, among the newest pages. */
async function runsOf(context, wanted) {
  const runs = [];
  let after = '';
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const data = await get(`v1/overview?limit=${PAGE_SUITES}` + (after ? '&after=' + encodeURIComponent(after) : ''), context.signal);
    runs.push(...data.suites.filter((suite) => isMeant(suite, wanted)));
    if (!data.next) return {runs: runs.reverse(), whole: true};
    after = data.next;
  }
  return {runs: runs.reverse(), whole: false};
}

/* Parts that runs of one line share: "nightly-78370180" is a run of "nightly". */
const partsOf = (run, world) => [run.suite.replace(/-[0-9a-f]{8}(-.*)?$/, ''), run.planner,
  run.rig ? 'rig ' + run.rig.slice(0, 12) : 'the built-in rig', world];

/* One row for each world of a run that has a rate, with the line that it belongs to. */
function ratesOf(runs) {
  const before = {};
  return runs.flatMap((run, at) => Object.entries(run.mains).filter(([, m]) => typeof m.rate === 'number').map(([world, m]) => {
    const parts = partsOf(run, world);
    const key = JSON.stringify(parts);
    const moved = key in before ? m.rate - before[key] : null;
    before[key] = m.rate;
    return {...m, run, at, world, parts, key, moved};
  }));
}

/* Lines by key: their number, and a name of the parts in which they differ, the world at least. */
function linesOf(rates) {
  const lines = new Map();
  for (const r of rates) if (!lines.has(r.key)) lines.set(r.key, {number: lines.size % COLOURS, parts: r.parts});
  const all = [...lines.values()].map((line) => line.parts);
  const shown = all.length ? all[0].map((part, i) => i === all[0].length - 1 || all.some((other) => other[i] !== part)) : [];
  for (const line of lines.values()) line.name = line.parts.filter((part, i) => shown[i]).join(', ');
  return lines;
}

function put(parent, tag, attributes, text) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function picture(rates, lines, runs) {
  const least = Math.max(0, Math.floor(10 * Math.min(...rates.map((r) => r.worst))) / 10);
  const span = Math.max(0.1, 1 - least);
  const x = (at) => LEFT + 12 + (runs > 1 ? at * (WIDTH - LEFT - 24) / (runs - 1) : (WIDTH - LEFT - 24) / 2);
  const y = (rate) => BOTTOM - (rate - (1 - span)) / span * (BOTTOM - TOP);
  const svg = document.createElementNS(NS, 'svg');
  const label = `Main lines that pass, ${rates.length} rates of ${runs} runs, the last ${share(rates[rates.length - 1].rate)}`;
  for (const [name, value] of Object.entries({viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label, class: 'trend'})) svg.setAttribute(name, value);
  for (let i = 0; i <= 4; i++) {
    const rate = 1 - span + span * i / 4;
    put(svg, 'line', {x1: LEFT, x2: WIDTH, y1: y(rate), y2: y(rate), class: 'grid'});
    put(svg, 'text', {x: LEFT - 6, y: y(rate) + 5, 'text-anchor': 'end'}, (100 * rate).toFixed(0) + '%');
  }
  for (const [key, line] of lines) {
    const own = rates.filter((r) => r.key === key);
    const points = own.map((r) => `${x(r.at)},${y(r.rate)}`).join(' ');
    put(svg, 'polyline', {points, class: 'world' + line.number});
    for (const r of own) {
      if (r.best > r.worst) put(svg, 'line', {x1: x(r.at), x2: x(r.at), y1: y(r.worst), y2: y(r.best), class: 'range'});
      const link = put(svg, 'a', {href: suiteLink(r.run.suite)});
      const point = put(link, 'circle', {cx: x(r.at), cy: y(r.rate), r: 6, class: 'world' + line.number});
      put(point, 'title', {}, `${r.run.suite}, ${r.parts.slice(1).join(', ')}: ${share(r.rate)}` + (r.run.note ? '\n' + r.run.note : ''));
    }
  }
  return svg;
}

const legend = (lines) => el('p', {class: 'small legend'},
  [...lines.values()].map((line) => el('span', {class: 'world' + line.number, title: line.parts.join(', ')}, '\u25cf ' + line.name)));

const columns = [
  ['Run', 'suite', (r) => el('a', {href: suiteLink(r.run.suite)}, r.run.suite)],
  ['Submitted', 'nowrap', (r) => when(r.run.submitted_s)],
  ['Planner', 'mono', (r) => (r.run.planner_hash || '').slice(0, 12)],
  ['Commit', 'mono', (r) => (r.run.commit || '').slice(0, 12) + (/with changes$/.test(r.run.commit || '') ? ' +' : '')],
  ['Line', 'words', (r) => r.parts.slice(1).join(', ')],
  ['Scenarios', 'n', (r) => count(r.scenarios)],
  ['Main lines pass', 'n', rateText],
  ['Points', 'n', (r) => (r.moved === null ? '\u2013' : (r.moved > 0 ? '+' : '') + (100 * r.moved).toFixed(1))],
  ['Note', 'words', (r) => r.run.note || ''],
];

function form(wanted) {
  const field = (name, title) => el('label', {}, title, el('input', {name, value: wanted[name] || '', maxlength: 200}));
  const made = el('form', {class: 'filter', 'aria-label': 'Runs'}, field('name', 'Name'), field('tag', 'Tag'),
    field('planner', 'Planner or its hash'), el('button', {type: 'submit'}, 'Show'));
  made.addEventListener('submit', (event) => {
    event.preventDefault();
    const asked = ['name', 'tag', 'planner'].map((name) => [name, made.elements[name].value.trim()]).filter(([, value]) => value);
    location.hash = '#/trend?' + new URLSearchParams(asked);
  });
  return made;
}

export async function trendView(context) {
  const wanted = Object.fromEntries(['name', 'tag', 'planner'].map((name) => [name, context.query.get(name) || '']));
  const place = el('div');
  page.path([['trend', '#/trend']]);
  context.main.replaceChildren(el('h1', {}, 'Trend'), form(wanted), place);
  const draw = async () => {
    const {runs, whole} = await runsOf(context, wanted);
    const rates = ratesOf(runs);
    const lines = linesOf(rates);
    if (!context.current()) return;
    place.replaceChildren(
      rates.length ? el('div', {class: 'card'}, picture(rates, lines, runs.length), legend(lines)) : '',
      el('div', {class: 'card'}, table(columns, [...rates].reverse(), 'No run with a rate is meant.')),
      whole ? '' : el('p', {class: 'note'}, `Of the newest ${count(PAGES_MAX * PAGE_SUITES)} suites alone.`));
  };
  await draw();
  const again = renewer(() => draw().catch((e) => told(e, place)));
  return {news: again.ask, dispose: again.stop};
}
