/*
 * The dashboard: which view the address names, questions to the API, and news of changes.
 *
 * The page holds no data of its own. It asks with the token that was typed in, kept in this tab's
 * sessionStorage and sent as an Authorization header, so that no link or picture can carry it. What
 * the store says is shown as text alone (el() below): names are other people's.
 */
import {overviewView, suiteView, outcomeView, workersView} from './dash_views.js';
import {trendView} from './dash_trend.js';
import {trustView} from './dash_trust.js';

const TOKEN_KEY = 'swerve-token';
const POLL_MS = 10000;    /* where there are no events */
const RETRY_MS = 2000;
const RENEW_MS = 2000;    /* a view is asked for again at most so often */

const main = document.getElementById('main');
const live = document.getElementById('live');
const ask = document.getElementById('ask');

let view = {dispose() {}};
let turn = 0;             /* of the view that is shown; answers for earlier ones are dropped */

/* An element with attributes and children; children that are no elements become text. */
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

export class Refused extends Error {
  constructor(code, text) { super(text); this.code = code; }
}

function token() { return sessionStorage.getItem(TOKEN_KEY); }

function headers() { return token() ? {Authorization: 'Bearer ' + token()} : {}; }

async function refusal(response) {
  let text = response.status + ' ' + response.statusText;
  try { text = (await response.json()).error.text || text; } catch (e) { /* no sentence came with it */ }
  return new Refused(response.status, text);
}

/* An answer of the API. A server that is too busy says when to come again. */
export async function get(path, signal) {
  for (let tries = 0; ; tries++) {
    const response = await fetch(path, {headers: headers(), signal, cache: 'no-store', redirect: 'error'});
    if (response.ok) return response.json();
    if ((response.status === 503 || response.status === 429) && tries < 5) {
      await new Promise((done) => setTimeout(done, 1000 * (1 + tries)));
      continue;
    }
    throw await refusal(response);
  }
}

/* ---- tokens ---- */

function askForToken(why) {
  stopEvents();
  view.dispose();
  view = {dispose() {}};
  news = null;            /* what an earlier token saw */
  main.replaceChildren();
  showPath([]);
  ask.hidden = false;
  document.getElementById('refused').textContent = why || '';
  document.getElementById('token').focus();
}

ask.addEventListener('submit', (event) => {
  event.preventDefault();
  const field = document.getElementById('token');
  sessionStorage.setItem(TOKEN_KEY, field.value.trim());
  field.value = '';
  ask.hidden = true;
  show();
});

document.getElementById('leave').addEventListener('click', () => {
  sessionStorage.removeItem(TOKEN_KEY);
  turn++;
  askForToken('');
  document.getElementById('leave').hidden = true;
});

/* Message of a failure, in the place of the view; true: it is told. */
export function told(error, place) {
  if (error.name === 'AbortError') return true;
  if (error instanceof Refused && error.code === 401) {
    askForToken(token() ? error.message : '');
  } else {
    place.replaceChildren(el('div', {class: 'card bad', role: 'alert'}, error.message || String(error)));
  }
  return true;
}

/* ---- events ---- */

let events = null;        /* the AbortController of the stream */
let poll = 0;
let news = null;          /* the newest overview */

function say(state, text) { live.className = state; live.textContent = text; }

function stopEvents() {
  if (events) events.abort();
  events = null;
  clearTimeout(poll);
  say('', '');
}

function takeNews(text) {
  news = JSON.parse(text);
  view.news?.(news);
}

/* Lines of a text/event-stream; EventSource sends no headers, so the stream is read by hand. */
async function readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
      if (data.length > 0) takeNews(data.join('\n'));
    }
  }
}

async function followEvents() {
  const own = new AbortController();
  events = own;
  let wait = RETRY_MS;
  while (!own.signal.aborted) {
    try {
      const response = await fetch('v1/events', {headers: headers(), signal: own.signal, cache: 'no-store'});
      if (response.ok) {
        say('on', 'live');
        await readEvents(response);
        wait = RETRY_MS;
      } else if (response.status === 401) {
        told(await refusal(response), main);  /* revoked meanwhile: what it saw goes with it */
        return;
      } else {
        say('off', 'every 10 s');
        takeNews(JSON.stringify(await get('v1/overview', own.signal)));
        wait = POLL_MS;
      }
    } catch (error) {
      if (error.name === 'AbortError') return;
      say('off', 'no answer, trying again');
      wait = Math.min(2 * wait, POLL_MS);
    }
    await new Promise((done) => { poll = setTimeout(done, wait); });
  }
}

/* A browser has six connections to a server: tabs that nobody looks at hold none of them. */
document.addEventListener('visibilitychange', () => {
  if (document.hidden) stopEvents();
  else if (ask.hidden && !events) followEvents();
});

/* Calls `renew` when news come, but never twice within RENEW_MS nor while it still runs: news that come
   meanwhile may be newer than what it asked for, and have it called once more. */
export function renewer(renew) {
  let timer = 0;
  let busy = false;
  let newer = false;
  let stopped = false;
  let last = 0;
  const run = async () => {
    timer = 0;
    busy = true;
    newer = false;
    try { await renew(); } finally { busy = false; last = Date.now(); }
    if (newer) ask();
  };
  function ask() {
    newer = true;
    if (!timer && !busy && !stopped) timer = setTimeout(run, Math.max(0, RENEW_MS - (Date.now() - last)));
  }
  return {ask, stop() { stopped = true; clearTimeout(timer); }};
}

/* ---- addresses ---- */

/* "#/suite/NAME?verdict=fail" as parts and query. */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  let parts = [];
  try { parts = path.split('/').filter(Boolean).map(decodeURIComponent); } catch (e) { /* not ours */ }
  return {parts, query: new URLSearchParams(query || '')};
}

export function suiteLink(suite, query) {
  const text = query ? new URLSearchParams(query).toString() : '';
  return '#/suite/' + encodeURIComponent(suite) + (text ? '?' + text : '');
}

function showPath(crumbs) {
  document.getElementById('path').replaceChildren(...crumbs.map(([text, href]) => el('a', {href}, text)));
  document.title = ['Swerve', ...crumbs.map(([text]) => text)].join(' \u203a ');
}

export const page = {
  get news() { return news; },
  path: showPath,
  focus: () => main.focus({preventScroll: true}),
};

async function show() {
  const own = ++turn;
  view.dispose();
  view = {dispose() {}};
  ask.hidden = true;
  document.getElementById('leave').hidden = !token();
  const {parts, query} = address();
  const control = new AbortController();
  const context = {main, query, signal: control.signal, current: () => own === turn};
  let make = overviewView;
  if (parts[0] === 'suite' && parts.length === 2) make = suiteView;
  else if (parts[0] === 'outcome' && parts.length === 2) make = outcomeView;
  else if (parts[0] === 'workers') make = workersView;
  else if (parts[0] === 'trend') make = trendView;
  else if (parts[0] === 'trust') make = trustView;
  else if (parts.length > 0 && parts[0] !== 'main') {
    main.replaceChildren(el('p', {}, 'There is no such view. ', el('a', {href: '#/'}, 'All suites')));
    return;
  }
  const known = news;
  try {
    const made = await make(context, parts[1]);
    if (own !== turn) { made.dispose?.(); return; }
    view = {news: made.news, dispose() { control.abort(); made.dispose?.(); }};
    if (news && news !== known) view.news?.(news);  /* they came while it was made */
    document.body.dataset.ready = String(own);
    if (!events) followEvents();
  } catch (error) {
    if (own === turn) { told(error, main); document.body.dataset.ready = String(own); }
  }
}

window.addEventListener('hashchange', () => { if (location.hash !== '#main') show(); });

document.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, select, textarea');
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const button = {n: '[data-key=n]', p: '[data-key=p]', '/': '[data-key="/"]'}[event.key];
  if (button) {
    const target = main.querySelector(button);
    if (target && !target.disabled) {
      event.preventDefault();
      if (event.key === '/') target.focus(); else target.click();
    }
  } else if (event.key === 'u') {
    const crumbs = document.querySelectorAll('#path a');
    location.hash = crumbs.length > 1 ? crumbs[crumbs.length - 2].hash : '#/';
  }
});

show();
