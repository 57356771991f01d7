// Sentences at the top of the page: what went wrong and what to do, and what was done.

import { text } from '../text/index.js';
import { h, icon } from './dom.js';

const BRIEF = 8000; // milliseconds
const shown = new Map();

let region = null;

export function mountNotices() {
  region = h('div', { class: 'notices', id: 'notices' });
  return region;
}

/** Show a sentence; one with the same `id` replaces it. `action` is {label, run}. */
export function notice(sentence, { id = sentence, kind = 'info', action = null, stays = kind === 'error' } = {}) {
  dismiss(id);
  const button = action
    ? h('button', { type: 'button', class: 'button small', onclick: () => { dismiss(id); action.run(); } }, action.label)
    : null;
  const close = h('button', { type: 'button', class: 'icon-button', 'aria-label': text.trouble.dismiss, onclick: () => dismiss(id) }, icon('close'));
  const element = h(
    'div',
    { class: `notice ${kind}`, role: kind === 'error' ? 'alert' : 'status', 'data-notice': id },
    kind === 'error' ? icon('warning') : icon('check'),
    h('p', {}, sentence),
    button,
    close,
  );
  const timer = stays ? null : setTimeout(() => dismiss(id), BRIEF);
  shown.set(id, { element, timer });
  region.append(element);
}

export function dismiss(id) {
  const { element, timer } = shown.get(id) ?? {};
  clearTimeout(timer);
  element?.remove();
  shown.delete(id);
}

/** Return the sentence for an error of the engine. */
export function sentenceOf(error) {
  if (error?.name !== 'EngineError') {
    return text.trouble.unexpected(error?.message ?? String(error));
  }
  const problem = error.problem || text.trouble[error.reason] || text.trouble.refused;
  return error.advice ? `${endless(problem)}. ${capital(error.advice)}.` : problem;
}

const endless = (sentence) => sentence.replace(/[.;]$/, '');
const capital = (sentence) => endless(sentence.charAt(0).toUpperCase() + sentence.slice(1));

/** Show an error; a missing server or token is shown by those who watch for it. */
export function complain(error, id = 'trouble') {
  if (error?.name === 'AbortError' || error?.reason === 'offline') {
    return;
  }
  if (error?.name !== 'EngineError') {
    console.error(error);
  }
  notice(sentenceOf(error), { id, kind: 'error' });
}
