// Dialogs: one look, a title, a way out by button and by Escape; the browser keeps the focus inside.

import { text } from '../text/index.js';
import { h, icon } from './dom.js';

let titles = 0;

/**
 * Show a dialog and return {element, close, closed}. `body` is a list of elements; `onclose` runs
 * whichever way it closes. A dialog with `locked` has no way out but its own buttons.
 */
export function openDialog({ title, body = [], wide = false, locked = false, onclose, name = '' }) {
  titles += 1;
  const id = `dialog-title-${titles}`;
  const heading = h('h2', { id, class: 'dialog-title' }, title);
  const out = locked
    ? null
    : h('button', { type: 'button', class: 'icon-button', 'aria-label': text.common.close, onclick: () => element.close() }, icon('close'));
  const content = h('div', { class: 'dialog-body' }, ...body);
  const element = h(
    'dialog',
    { class: `dialog ${wide ? 'wide' : ''}`, 'aria-labelledby': id, 'data-name': name },
    h('div', { class: 'dialog-head' }, heading, out),
    content,
  );
  document.body.append(element);
  const closed = new Promise((resolve) => {
    element.addEventListener('close', () => {
      element.remove();
      onclose?.();
      resolve();
    });
  });
  element.addEventListener('cancel', (event) => {
    if (locked) {
      event.preventDefault();
    }
  });
  element.addEventListener('click', (event) => {
    if (event.target === element && !locked) {
      element.close();
    }
  });
  element.showModal();
  return { element, heading, content, closed, close: () => element.close() };
}

/** Ask for a name; `onname` gets it, trimmed, or the suggestion if nothing was typed. */
export function askName({ title, label, start, suggested = '', value = '', hint = '', onname, name = 'name' }) {
  const input = h('input', {
    type: 'text', class: 'field', id: 'asked-name', value, placeholder: suggested,
    autocomplete: 'off', maxLength: 200, enterKeyHint: 'go', spellcheck: false,
  });
  const form = h(
    'form',
    {
      class: 'stack',
      onsubmit: (event) => {
        event.preventDefault();
        const given = input.value.trim() || suggested;
        if (given) {
          dialog.close();
          onname(given);
        }
      },
    },
    h('label', { for: 'asked-name', class: 'label' }, label),
    input,
    hint ? h('p', { class: 'hint' }, hint) : null,
    h(
      'div',
      { class: 'row end' },
      h('button', { type: 'button', class: 'button', onclick: () => dialog.close() }, text.common.cancel),
      h('button', { type: 'submit', class: 'button primary' }, start),
    ),
  );
  const dialog = openDialog({ title, body: [form], name });
  input.focus();
  input.select();
  return dialog;
}
