// The tray: pictures that were unknown or unsure. Choose some, and tap what they are; a new thing
// gets a name like any other, which the result lets one change.

import { text } from '../text/index.js';
import { h, setText, show } from './dom.js';
import { complain } from './notices.js';
import { clearThumb, fillThumb } from './thumbs.js';

export class Tray {
  /** `onLearned(learned)` gets what teaching from the tray answered. */
  constructor(state, onLearned) {
    this.state = state;
    this.onLearned = onLearned;
    this.items = [];
    this.chosen = new Set();
    this.places = new Map();
    this.working = false;
    this.list = h('ul', { class: 'tray-list' });
    this.hint = h('p', { class: 'hint' });
    this.question = h('p', { class: 'strong', role: 'status' });
    this.choices = h('div', { class: 'chips' });
    this.bar = h('div', { class: 'tray-bar', hidden: true }, this.question, this.choices);
    this.all = h('button', { type: 'button', class: 'button small', onclick: () => this.chooseAll() });
    this.element = h(
      'section',
      { class: 'tray', 'aria-labelledby': 'tray-title', 'data-part': 'tray' },
      h('div', { class: 'section-head' }, h('h2', { id: 'tray-title' }, text.tray.section), this.all),
      this.hint,
      this.list,
      this.bar,
    );
    state.addEventListener('classes', () => this.draw());
    state.engine.addEventListener('tray', () => this.load());
    this.draw();
  }

  async load() {
    try {
      this.items = await this.state.engine.tray();
    } catch (error) {
      complain(error, 'tray');
      return;
    }
    const ids = new Set(this.items.map((item) => item.id));
    this.chosen = new Set([...this.chosen].filter((id) => ids.has(id)));
    this.draw();
  }

  draw() {
    const ids = new Set(this.items.map((item) => item.id));
    for (const [id, place] of this.places) {
      if (!ids.has(id)) {
        place.remove();
        this.places.delete(id);
      }
    }
    this.items.forEach((item, at) => {
      const place = this.places.get(item.id) ?? this.makePlace(item);
      this.places.set(item.id, place);
      this.drawPlace(place, item, at);
      if (this.list.children[at] !== place) {
        this.list.insertBefore(place, this.list.children[at] ?? null);
      }
    });
    setText(this.hint, this.items.length ? text.tray.hint : text.tray.empty);
    show(this.list, this.items.length > 0);
    show(this.all, this.items.length > 1);
    setText(this.all, this.chosen.size === this.items.length ? text.common.none : text.common.all);
    this.drawBar();
  }

  makePlace(item) {
    const image = h('img', { alt: '', draggable: false });
    clearThumb(image);
    fillThumb(image, `tray-${item.id}`, () => this.state.engine.trayPicture(item.id));
    return h(
      'li',
      {},
      h('button', { type: 'button', class: 'tray-item', onclick: () => this.toggle(item.id) }, image, h('span', { class: 'tray-kind' })),
    );
  }

  drawPlace(place, item, at) {
    const kind = item.kind === 'unknown' ? text.tray.unknown : text.tray.unsure(item.label);
    const button = place.firstChild;
    button.dataset.kind = item.kind;
    button.setAttribute('aria-pressed', String(this.chosen.has(item.id)));
    button.setAttribute('aria-label', text.tray.picture(kind, at + 1));
    setText(button.lastChild, kind);
  }

  drawBar() {
    const n = this.chosen.size;
    const shown = n > 0;
    show(this.bar, shown);
    if (!shown) {
      return;
    }
    setText(this.question, text.tray.chosen(n));
    const chip = (label, run, kind = '') =>
      h('button', { type: 'button', class: `chip ${kind}`, disabled: this.working, onclick: run }, label);
    const free = this.state.classes.free > 0;
    this.choices.replaceChildren(
      ...(free ? [chip(text.tray.fresh, () => this.teach({ label: this.state.freshName(text.fresh.suggested) }), 'primary')] : []),
      ...this.state.learned.map((entry) => chip(this.state.nameOf(entry), () => this.teach({ slot: entry.slot }))),
      chip(text.tray.drop, () => this.drop(), 'quiet'),
    );
  }

  toggle(id) {
    if (!this.chosen.delete(id)) {
      this.chosen.add(id);
    }
    this.draw();
  }

  chooseAll() {
    const all = this.chosen.size === this.items.length;
    this.chosen = new Set(all ? [] : this.items.map((item) => item.id));
    this.draw();
  }

  async teach(what) {
    await this.work(async () => {
      const learned = await this.state.engine.teachTray([...this.chosen], what);
      this.chosen.clear();
      this.onLearned(learned);
    });
  }

  /** Discard what was chosen, and nothing that came meanwhile. */
  async drop() {
    await this.work(async () => {
      await this.state.engine.dropTray([...this.chosen]);
      this.chosen.clear();
    });
  }

  async work(task) {
    this.working = true;
    this.drawBar();
    try {
      await task();
    } catch (error) {
      complain(error, 'tray');
    } finally {
      this.working = false;
      await this.load();
    }
  }
}
