// What a lesson changed: how long it took, what is new, what it could be confused with; undo.

import { text } from '../text/index.js';
import { askName } from './dialog.js';
import { h, icon, show } from './dom.js';
import { classThumb } from './thumbs.js';

export class ResultPanel {
  constructor(state, actions) {
    this.state = state;
    this.actions = actions;
    this.element = h('section', { class: 'result card', hidden: true, 'data-part': 'result', tabIndex: -1, 'aria-live': 'polite' });
  }

  hide() {
    show(this.element, false);
  }

  /** Show what `commit` answered. */
  show(learned, { canTeach = true } = {}) {
    const entry = this.state.entry(learned.slot) ?? learned;
    const image = h('img', { class: 'thumb', alt: '' });
    classThumb(image, this.state.engine, entry);
    const took = learned.ms + (learned.extra_ms ?? 0);
    const change = learned.new
      ? text.result.fresh(learned.frames)
      : text.result.more(learned.frames, entry.pictures ?? learned.frames);
    this.element.replaceChildren(
      h(
        'div',
        { class: 'result-head' },
        image,
        h(
          'div',
          {},
          h('h2', { class: 'result-title' }, text.result.title(this.state.called(learned.label)), ' ', h('span', { class: 'result-time' }, text.result.time(took))),
          h('p', {}, change),
        ),
        h('button', { type: 'button', class: 'icon-button', 'aria-label': text.common.close, onclick: () => this.hide() }, icon('close')),
      ),
      ...this.confusion(learned, entry),
      ...(learned.notes ?? []).map((note) => h('p', { class: 'hint' }, note)),
      h(
        'div',
        { class: 'row' },
        h('button', { type: 'button', class: 'button', 'data-action': 'undo', onclick: this.actions.undo }, icon('undo'), text.result.undo),
        entry.background
          ? null
          : h('button', { type: 'button', class: 'button', 'data-action': 'rename', onclick: () => this.rename(learned) }, text.result.rename),
        canTeach
          ? h('button', { type: 'button', class: 'button', 'data-action': 'again', onclick: () => this.actions.again(learned) }, text.result.again)
          : null,
      ),
    );
    show(this.element, true);
  }

  confusion(learned, entry) {
    const confused = learned.confused ?? [];
    if (!confused.length) {
      return this.state.learned.length > 1 ? [h('p', { class: 'clear' }, icon('check'), text.result.clear)] : [];
    }
    const pairs = confused.slice(0, 3).map((other) => h('li', { class: 'pair' },
      h('div', { class: 'pair-pictures' }, this.picture(entry), this.picture(this.state.entry(other.slot) ?? other)),
      h('p', {}, h('strong', {}, this.state.called(other.label)), ' · ', text.result.confusedShare(other.share))));
    return [
      h('p', { class: 'confused' }, icon('warning'), text.result.confused),
      h('ul', { class: 'pairs' }, ...pairs),
      h('p', { class: 'hint' }, text.result.confusedHint),
    ];
  }

  picture(entry) {
    const image = h('img', { class: 'thumb large', alt: entry.label ?? '' });
    classThumb(image, this.state.engine, entry);
    return image;
  }

  rename(learned) {
    const entry = this.state.entry(learned.slot) ?? learned;
    askName({
      title: text.sheet.rename,
      label: text.sheet.name,
      start: text.common.save,
      value: entry.label,
      onname: (name) => this.actions.rename(learned.slot, name).then((done) => {
        if (done) {
          this.show({ ...learned, label: name });
        }
      }),
    });
  }
}
