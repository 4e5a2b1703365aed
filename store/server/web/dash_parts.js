/*
 * Parts of the dashboard's views: counts, dates, tables that stack on a phone, tiles, pages.
 */
import {el} from './dash.js';

const whole = new Intl.NumberFormat('en-US');
export const count = (n) => whole.format(n || 0);
export const words = (name) => String(name).replaceAll('_', ' ');
/* Names that the store gives in one text. */
export const names = (text) => (text ? text.split(', ') : []);

/* A name that may go on in the next line behind its signs, so that words stay whole. */
export const breakable = (name) => String(name).split(/(?<=[/,=_:-])/).flatMap((part, i) => (i ? [document.createElement('wbr'), part] : [part]));

export function percent(part, of) { return of > 0 ? (100 * part / of).toFixed(part === of || part === 0 ? 0 : 1) + '%' : '\u2013'; }

/* Main lines without an outcome, and all without a result. */
export const unseen = (m) => m.no_answer + (m.cancelled || 0) + (m.waiting || 0);
export const lacking = (m) => (m.verdicts.flagged || 0) + (m.verdicts.invalid || 0) + unseen(m);
export const share = (rate) => (rate === null || rate === undefined ? '\u2013' : (100 * rate).toFixed(1) + '%');

/* A rate, beside its range where main lines have no result. */
export const rateText = (m) => share(m.rate) + (lacking(m) ? ' [' + share(m.worst) + ' to ' + share(m.best) + ']' : '');

export function when(s) {
  if (!s) return '\u2013';
  const at = new Date(s * 1000);
  return el('time', {datetime: at.toISOString(), title: at.toISOString()},
    at.toLocaleString(undefined, {year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit'}));
}

/* columns: [heading, class, cell of a row]; on a phone each row becomes a block with the headings. */
export function table(columns, rows, empty) {
  if (rows.length === 0) return el('p', {class: 'soft'}, empty);
  return el('table', {class: 'stack'},
    el('thead', {}, el('tr', {}, columns.map(([heading, kind]) => el('th', {class: kind, scope: 'col'}, heading)))),
    el('tbody', {}, rows.map((row) => el('tr', {}, columns.map(([heading, kind, cell]) =>
      el('td', {class: kind, 'data-label': heading}, cell(row)))))));
}

export const tile = (value, label) => el('div', {class: 'tile'}, el('b', {}, value), el('span', {}, label));

/* Next and previous page; a page is named by what it comes after. */
export function pager(shown, before, after, go) {
  return el('div', {class: 'pager'},
    el('button', {type: 'button', 'data-key': 'p', disabled: before === null, onclick: () => go(before)}, 'Previous'),
    el('button', {type: 'button', 'data-key': 'n', disabled: after === null, onclick: () => go(after)}, 'Next'),
    el('span', {class: 'soft small'}, shown));
}
