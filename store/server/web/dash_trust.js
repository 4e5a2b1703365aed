/*
 * The view of trust: monitors that sound, slices that are frozen to the teacher, since which rollout,
 * agreement by slice, and what happened to the versions of models. See docs/trust.md.
 *
 * The server reads the store on with each question, so both this view and the tile on the first page
 * ask until what they show has every outcome.
 */
import {el, get, told, renewer, page} from './dash.js';
import {count, words, percent, when, table, tile, pager} from './dash_parts.js';

const PAGE_ROWS = 50;
const EVENTS_PAGE = 1000;
const EVENT_PAGES_MAX = 20;
const READ_PAUSE_MS = 100;
const DAYS = 90;
const MAKE_PAUSE_MS = 2000;  /* all is read, and the rows are not made anew yet */

const sounds = (monitor) => monitor.alarm !== 'quiet';
const short = (hash) => el('span', {class: 'mono', title: hash}, hash.slice(0, 12));

function sliceText(slice) {
  const parts = Object.entries(slice).map(([kind, value]) =>
    (kind === 'safety_critical' ? 'safety critical' : words(kind) + ': ' + value));
  return parts.join(', ') || 'all';
}

/* Alarm of a monitor, the rollout that it began to sound at, and when that came. */
function monitorCell(monitor) {
  if (!sounds(monitor)) return 'quiet';
  return el('span', {}, el('b', {class: 'bad'}, monitor.alarm), ` after ${count(monitor.alarm_jobs)} jobs, at `,
    el('a', {href: '#/outcome/' + monitor.alarm_outcome}, 'rollout ' + monitor.alarm_outcome),
    ', ', monitor.alarm_at_ms ? when(monitor.alarm_at_ms / 1000) : 'time not known');
}

function stateCell(row) {
  if (row.shadow) return 'a shadow: counts nowhere';
  if (row.frozen) return el('b', {class: 'bad'}, 'frozen to the teacher');
  return sounds(row.monitor) || sounds(row.flags) ? el('span', {class: 'note'}, 'sounds') : 'not frozen';
}

/* choose(row): its days are asked for. */
const rowColumns = (choose) => [
  ['Slice', 'suite', (r) => sliceText(r.slice)],
  ['Days', 'nowrap', (r) => el('button', {type: 'button', onclick: () => choose(r)}, 'By day')],
  ['State', 'nowrap', stateCell],
  ['Verdicts', '', (r) => (r.shadow ? '\u2013' : monitorCell(r.monitor))],
  ['Flags', '', (r) => (r.shadow ? '\u2013' : monitorCell(r.flags))],
  ['Rollouts', 'n', (r) => count(r.pairs)],
  ['Agree', 'n', (r) => percent(r.agree.verdict.pairs, r.pairs)],
  ['Student passes alone', 'n', (r) => count(r.optimistic)],
  ['Teacher wrong', 'n', (r) => (r.object.pairs ? count(r.object.teacher_wrong) : '\u2013')],
  ['Student', 'nowrap', (r) => short(r.student)],
  ['Teacher, or whose answers count', 'nowrap', (r) => short(r.teacher)],
];

const dayColumns = [
  ['Day (UTC)', 'nowrap', (d) => d.day],
  ['Rollouts', 'n', (d) => count(d.pairs)],
  ['Agree', 'n', (d) => percent(d.agree, d.pairs)],
  ['95%', 'n', (d) => `${(100 * d.low).toFixed(0)} to ${(100 * d.high).toFixed(0)}%`],
  ['Student passes alone', 'n', (d) => (d.optimistic ? el('b', {class: 'bad'}, count(d.optimistic)) : '0')],
];

/* Tells rows apart, whose order changes. */
const keyOf = (row) => JSON.stringify([row.shadow, row.student, row.sampler, row.teacher, row.teacher_sampler, row.slice]);

function daysCard(row) {
  const rest = [row.older_pairs > 0 && `${count(row.older_pairs)} rollouts of earlier days`,
    row.undated_pairs > 0 && `${count(row.undated_pairs)} of which the store kept no time`].filter(Boolean).join(', ');
  return el('div', {class: 'card', id: 'days'}, el('h2', {}, 'By day: ' + sliceText(row.slice)),
    el('p', {class: 'soft'}, (row.shadow ? 'Shadow ' : 'Student '), short(row.student), (row.shadow ? ' beside ' : ', teacher '), short(row.teacher)),
    table(dayColumns, row.by_day, 'Of no day that is known.'), rest ? el('p', {class: 'soft'}, rest) : '');
}

function driftText(student) {
  const kinds = Object.entries(student.drift).filter(([, d]) => d.unseen > 0 || d.index > 0.25);
  return kinds.map(([kind, d]) => words(kind) + (d.unseen > 0 ? ' (never seen: ' + d.unseen_value + ')' : '')).join(', ');
}

const studentColumns = [
  ['Student', 'suite', (s) => short(s.student)],
  ['Main lines', 'n', (s) => count(s.drives)],
  ['Flagged', 'n', (s) => count(s.flagged)],
  ['Input drift', '', (s) => (s.drifted ? el('span', {class: 'bad'}, driftText(s)) : 'none known')],
];

/* Measures that got worse than in earlier drives of the same scenarios. */
const healthColumns = [
  ['Slice', 'suite', (d) => sliceText(d.slice)],
  ['Measure', '', (d) => el('b', {class: 'bad'}, words(d.measure))],
  ['Heard', '', (d) => el('span', {}, `after ${count(d.alarm_drives)} drives, at `,
    el('a', {href: '#/outcome/' + d.alarm_outcome}, 'rollout ' + d.alarm_outcome),
    ', ', d.alarm_at_ms ? when(d.alarm_at_ms / 1000) : 'time not known')],
  ['Main lines', 'n', (d) => count(d.drives)],
  ['Student', 'nowrap', (d) => short(d.student)],
  ['Sampler', 'nowrap', (d) => d.sampler],
];

/* Asks and draws until the rows have every outcome: each question reads on. */
async function askOn(context, query, draw) {
  for (let read = -1; ;) {
    const data = await get('v1/agreement?' + query, context.signal);
    if (!context.current()) return;
    draw(data);
    if (data.whole) return;
    await new Promise((done) => setTimeout(done, data.read > read ? READ_PAUSE_MS : MAKE_PAUSE_MS));
    read = data.read;
  }
}

/* Freezes that no thaw has ended. */
const holding = (freezes) => freezes.filter((f) => !f.thawed_by).length;

/* ---- the tile of the first page ---- */

/* {tile, ask, stop}: how many slices are frozen; hidden where the server does not follow that. */
export function trustTile(context) {
  const place = el('div', {class: 'tile', hidden: true});
  const draw = (data) => {
    // A policy's freezes are the store's too as soon as its server has recorded them; others are made by hand.
    const frozen = Math.max(data.frozen, holding(data.freezes || []));
    const drifts = (data.health_drift || []).length;
    const alarms = frozen + data.sounding_flags + drifts;
    const label = data.rows.length === 0 && data.whole && frozen === 0 ? 'slices frozen: nothing was audited'
      : data.whole ? 'slices frozen' + (data.sounding_flags ? ', ' + count(data.sounding_flags) + ' alarms of flags' : '')
        + (drifts ? ', ' + count(drifts) + ' drifts of health' : '')
        : 'slices frozen, counted so far';
    place.replaceChildren(el('b', {}, el('a', {href: '#/trust', class: alarms ? 'bad' : false}, count(frozen))), el('span', {}, label));
    place.hidden = false;
  };
  const again = renewer(async () => {
    try { await askOn(context, 'limit=1', draw); } catch (error) {
      place.hidden = true;
      if (error.code === 401) told(error, place);
    }
  });
  return {tile: place, ask: again.ask, stop: again.stop};
}

/* ---- the view ---- */

function eventText(e) {
  if (e.kind === 'evaluated') {
    return el('span', {}, el('b', {class: e.passed ? 'pass' : 'fail'}, e.passed ? 'evaluated: passed' : 'evaluated: did not pass'),
      e.against && ' against ' + e.against);
  }
  if (e.kind === 'added') return 'added';
  return `${e.from_state} \u2192 ${e.to_state}` + (e.canary_percent ? ` (${e.canary_percent}%)` : '') + (e.forced ? ', forced' : '');
}

const eventColumns = [
  ['Model', 'suite', (e) => e.model],
  ['When', 'nowrap', (e) => when(e.at_s)],
  ['Event', '', eventText],
  ['By', 'words', (e) => e.actor || '\u2013'],
  ['Why', '', (e) => e.evidence || '\u2013'],
  ['Jobs moved', 'n', (e) => count(e.jobs_moved)],
  ['After rollout', 'n', (e) => (e.after_outcome ? el('a', {href: '#/outcome/' + e.after_outcome}, String(e.after_outcome)) : '\u2013')],
];

/* All events, newest first; the API has them oldest first. */
async function readEvents(context) {
  const events = [];
  for (let pages = 0; pages < EVENT_PAGES_MAX; pages++) {
    const after = events.length ? events[events.length - 1].id : 0;
    const data = await get(`v1/model-events?after=${after}&max=${EVENTS_PAGE}`, context.signal);
    events.push(...data.events);
    if (data.events.length < EVENTS_PAGE) break;
  }
  return events.reverse();
}

/* The newest event's id. */
async function drawEvents(context, place) {
  const events = await readEvents(context);
  const draw = (from) => place.replaceChildren(
    table(eventColumns, events.slice(from, from + PAGE_ROWS), 'The store keeps no versions of models: swerve model add .. --store'),
    ...(events.length > PAGE_ROWS ? [pager(`${from + 1} to ${Math.min(from + PAGE_ROWS, events.length)} of ${count(events.length)} events, newest first`,
      from > 0 ? from - PAGE_ROWS : null, from + PAGE_ROWS < events.length ? from + PAGE_ROWS : null, draw)] : []));
  draw(0);
  return events.length ? events[0].id : 0;
}

function drawAgreement(data, from, go, choose, place) {
  const alarms = data.rows.filter((r) => sounds(r.monitor) || sounds(r.flags)).length;
  const freezes = (data.freezes || []).slice().reverse();
  const drifts = data.health_drift || [];
  place.replaceChildren(
    el('div', {class: 'tiles'},
      tile(count(data.frozen), 'slices that the policy freezes'),
      freezes.length > 0 && tile(count(holding(freezes)), 'freezes that the store holds'),
      tile(count(alarms) + (data.next && alarms === data.rows.length ? ' or more' : ''), 'slices with an alarm, on this page'),
      tile(count(data.sounding_flags), 'alarms of flags'),
      drifts.length > 0 && tile(count(drifts.length), 'drifts of health'),
      data.missing > 0 && tile(count(data.missing), 'audited rollouts without the student\u2019s side')),
    data.whole ? '' : el('p', {class: 'soft', id: 'behind'}, `Counted so far: outcomes up to ${count(data.up_to)}, read up to ${count(data.read)}`),
    el('div', {class: 'card'}, table(rowColumns(choose), data.rows,
      from > 0 ? 'No further slices.' : data.whole ? 'No job was audited: nothing is known of whether a student agrees with its teacher.' : 'Nothing is counted yet.')),
    from > 0 || data.next ? pager(`slices ${from + 1} to ${from + data.rows.length}; what matters comes first`,
      from > 0 ? Math.max(0, from - PAGE_ROWS) : null, data.next ?? null, go) : '',
    drifts.length > 0 ? el('h2', {}, 'Drift of health') : '',
    drifts.length > 0 ? el('div', {class: 'card', id: 'health-drift'}, table(healthColumns, drifts, '')) : '',
    freezes.length > 0 ? el('h2', {}, 'Freezes of the store') : '',
    freezes.length > 0 ? el('div', {class: 'card', id: 'freezes'}, table(freezeColumns, freezes, '')) : '',
    data.students.length > 0 ? el('h2', {}, 'Students') : '',
    data.students.length > 0 ? el('div', {class: 'card'}, table(studentColumns, data.students, '')) : '');
}

const freezeColumns = [
  ['Freeze', 'n', (f) => String(f.id)],
  ['Slice', '', (f) => sliceText(f.slice)],
  ['State', 'nowrap', (f) => (f.thawed_by ? 'thawed' : el('b', {class: 'fail'}, 'holds'))],
  ['Since', 'nowrap', (f) => when(f.at_s)],
  ['Student', 'nowrap', (f) => `${f.student_hash.slice(0, 12)} ${f.student_sampler}`],
  ['Moved', 'n', (f) => count(f.jobs_moved || 0)],
  ['In flight', 'n', (f) => count(f.jobs_in_flight || 0)],
  ['By', 'words', (f) => f.actor || '\u2013'],
  ['Why', '', (f) => f.evidence || '\u2013'],
];

export async function trustView(context) {
  const from = Math.max(0, Number.parseInt(context.query.get('from') || '0', 10) || 0);
  const agreement = el('div');
  const events = el('div', {class: 'card'});
  const go = (to) => { location.hash = to ? '#/trust?from=' + to : '#/trust'; };
  const days = el('div');
  let chosen = '';        /* row whose days are shown */
  let shown = [];
  const drawDays = async () => {
    const at = shown.findIndex((row) => keyOf(row) === chosen);
    if (at < 0) return;
    const data = await get(`v1/agreement?after=${from + at}&limit=1&days=${DAYS}`, context.signal);
    if (context.current() && data.rows.length && keyOf(data.rows[0]) === chosen) days.replaceChildren(daysCard(data.rows[0]));
  };
  const choose = (row) => {
    chosen = keyOf(row);
    drawDays().catch((e) => told(e, days));
  };
  let newest = 0;         /* event: the list stays as it is while somebody pages through it */
  const renewEvents = async () => {
    const data = await get(`v1/model-events?after=${newest}&max=1`, context.signal);
    if (data.events.length > 0 && context.current()) newest = await drawEvents(context, events);
  };
  const draw = () => askOn(context, `after=${from}&limit=${PAGE_ROWS}`, (data) => {
    shown = data.rows;
    drawAgreement(data, from, go, choose, agreement);
  }).then(drawDays);
  const again = renewer(() => Promise.all([draw().catch((e) => told(e, agreement)), renewEvents().catch((e) => told(e, events))]));
  page.path([['trust', '#/trust']]);
  context.main.replaceChildren(el('h1', {}, 'Trust'),
    el('p', {class: 'soft'}, 'How well students agree with their teachers where both were asked, over all suites. A slice whose monitor sounds and that explains most is frozen: while the store holds the freeze, the teacher answers there.'),
    agreement, days, el('h2', {}, 'Versions of models'), events);
  await Promise.all([draw().catch((e) => told(e, agreement)), drawEvents(context, events).then((id) => { newest = id; }, (e) => told(e, events))]);
  return {news: again.ask, dispose: again.stop};
}
