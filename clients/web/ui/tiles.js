// Tiles of the things it knows, and empty ones: tap or hold to teach.

import { text } from '../text/index.js';
import { h, icon, setText, show } from './dom.js';
import { pressable } from './press.js';
import { classThumb } from './thumbs.js';

// Empty tiles to show while little is learned; later one.
const EMPTY = 3;

export class Tiles {
  /**
   * `actions`: teach(entry), teachHeld(entry), teachBackground(), release(), giveUp(),
   * options(entry), add().
   */
  constructor(state, teacher, actions) {
    this.state = state;
    this.teacher = teacher;
    this.actions = actions;
    this.bySlot = new Map();
    this.empty = [];
    this.background = new BackgroundTile(this);
    this.summary = h('p', { class: 'section-sub' });
    this.list = h('ul', { class: 'tiles' });
    this.add = h('button', { type: 'button', class: 'button small', 'data-part': 'add', onclick: actions.add },
      icon('images'), text.tiles.add);
    this.hint = h('p', { class: 'hint', id: 'tiles-hint' }, text.tiles.hint);
    this.backgroundHint = h('p', { class: 'hint', id: 'background-hint' }, text.background.hint);
    this.element = h(
      'section',
      { class: 'things', id: 'things', 'aria-labelledby': 'things-title', tabIndex: -1 },
      h('div', { class: 'section-head' },
        h('div', {}, h('h2', { id: 'things-title' }, text.tiles.section), this.summary), this.add),
      this.list,
      this.hint,
      this.backgroundHint,
    );
    state.addEventListener('classes', () => this.draw());
    teacher.addEventListener('change', () => this.mark());
  }

  draw() {
    const { things } = this.state;
    const { free } = this.state.classes;
    setText(this.hint, free ? text.tiles.hint : `${text.tiles.hint} ${text.tiles.full}`);
    setText(this.summary, text.tiles.summary(things.length, free));
    const slots = new Set(things.map((entry) => entry.slot));
    for (const [slot, tile] of this.bySlot) {
      if (!slots.has(slot)) {
        tile.element.remove();
        this.bySlot.delete(slot);
      }
    }
    for (const entry of things) {
      if (!this.bySlot.has(entry.slot)) {
        this.bySlot.set(entry.slot, new Tile(this, entry));
      }
      this.bySlot.get(entry.slot).draw(entry);
    }
    const wanted = Math.min(free, Math.max(1, EMPTY - things.length));
    while (this.empty.length > wanted) {
      this.empty.pop().element.remove();
    }
    while (this.empty.length < wanted) {
      this.empty.push(new EmptyTile(this));
    }
    this.background.draw(this.state.background, free);
    const tiles = [...things.map((entry) => this.bySlot.get(entry.slot)), ...this.empty, this.background];
    const places = tiles.map((tile) => tile.element);
    show(this.backgroundHint, !this.background.element.hidden);
    places.forEach((place, at) => {
      if (this.list.children[at] !== place) {
        this.list.insertBefore(place, this.list.children[at] ?? null);
      }
    });
    this.mark();
  }

  /** Mark the tile that is being taught. */
  mark() {
    const { lesson } = this.teacher;
    this.list.classList.toggle('busy', Boolean(lesson));
    for (const [slot, tile] of this.bySlot) {
      const taught = Boolean(lesson) && (lesson.slot === slot || lesson.label === tile.entry.label);
      tile.element.classList.toggle('taught', taught);
    }
    this.background.element.classList.toggle('taught', Boolean(lesson?.background));
  }
}

class Tile {
  constructor(tiles, entry) {
    this.entry = entry;
    this.image = h('img', { alt: '', draggable: false });
    this.initial = h('span', { class: 'initial', 'aria-hidden': 'true' });
    this.name = h('span', { class: 'tile-name' });
    this.count = h('span', { class: 'tile-count' });
    const { actions } = tiles;
    this.button = h('button', { type: 'button', class: 'tile', 'aria-describedby': 'tiles-hint' },
      h('span', { class: 'tile-face' }, this.initial, this.image), this.name, this.count);
    pressable(this.button, {
      tap: () => actions.teach(this.entry),
      hold: () => actions.teachHeld(this.entry),
      release: actions.release,
      giveUp: actions.giveUp,
    });
    this.more = h('button', { type: 'button', class: 'icon-button more', onclick: () => actions.options(this.entry) }, icon('more'));
    this.element = h('li', { class: 'tile-place', 'data-slot': String(entry.slot) }, this.button, this.more);
    this.engine = tiles.state.engine;
  }

  draw(entry) {
    this.entry = entry;
    setText(this.name, entry.label);
    setText(this.count, entry.pictures ? text.pictures(entry.pictures) : text.tiles.empty);
    setText(this.initial, [...entry.label][0] ?? '');
    this.button.setAttribute('aria-label', text.tiles.describe(entry.label, entry.pictures));
    this.button.title = text.tiles.teach(entry.label);
    this.more.setAttribute('aria-label', text.tiles.more(entry.label));
    classThumb(this.image, this.engine, entry);
  }
}

class EmptyTile {
  constructor(tiles) {
    const { actions } = tiles;
    this.button = h('button', { type: 'button', class: 'tile empty', 'aria-describedby': 'tiles-hint', title: text.tiles.freshHint },
      h('span', { class: 'tile-face' }, icon('plus')), h('span', { class: 'tile-name' }, text.tiles.fresh));
    pressable(this.button, {
      tap: () => actions.teach(null),
      hold: () => actions.teachHeld(null),
      release: actions.release,
      giveUp: actions.giveUp,
    });
    this.element = h('li', { class: 'tile-place' }, this.button);
  }
}

/** The tile of the background, which is empty until it is taught; hidden if there is no room for it. */
class BackgroundTile {
  constructor(tiles) {
    const { actions } = tiles;
    this.engine = tiles.state.engine;
    this.entry = null;
    this.image = h('img', { alt: '', draggable: false });
    this.count = h('span', { class: 'tile-count' });
    this.button = h('button', { type: 'button', class: 'tile', 'aria-describedby': 'tiles-hint background-hint', title: text.background.teach },
      h('span', { class: 'tile-face' }, icon('place'), this.image), h('span', { class: 'tile-name' }, text.background.name), this.count);
    pressable(this.button, {
      tap: () => actions.teachBackground(),
      hold: () => actions.teachBackground({ held: true }),
      release: actions.release,
      giveUp: actions.giveUp,
    });
    this.more = h('button', { type: 'button', class: 'icon-button more', 'aria-label': text.tiles.more(text.background.name), onclick: () => actions.options(this.entry) }, icon('more'));
    this.element = h('li', { class: 'tile-place', 'data-part': 'background' }, this.button);
  }

  draw(entry, free) {
    this.entry = entry;
    const pictures = entry?.pictures ?? 0;
    setText(this.count, pictures ? text.pictures(pictures) : text.tiles.empty);
    this.button.classList.toggle('untaught', !entry);
    const described = pictures
      ? text.tiles.describe(text.background.name, pictures)
      : `${text.background.name}. ${text.background.teach}`;
    this.button.setAttribute('aria-label', described);
    if (entry) {
      this.element.append(this.more);
    } else {
      this.more.remove();
    }
    show(this.element, Boolean(entry) || free > 0);
    classThumb(this.image, this.engine, entry);
  }
}
