// The answer: the settled one large and steady, the best three guesses below, and familiarity.
// Numbers are smoothed for the eye; what is settled is the engine's decision alone.

import { text } from '../text/index.js';
import { h, icon, setText, show } from './dom.js';

const SMOOTH = 0.35; // share of the newest frame in a bar
const PAUSE = 90; // least milliseconds between two drawings
const ROWS = 3;
const STEADY = 0.08; // a guess must lead by this much to move up

export class AnswerPanel {
  constructor() {
    this.title = h('p', { class: 'settled' });
    this.sub = h('p', { class: 'settled-sub' });
    this.speed = h('p', { class: 'speed', title: text.live.speedHint });
    this.badge = h('span', { class: 'badge', 'aria-hidden': 'true' });
    // Said once for each change, not for each frame.
    this.said = h('p', { class: 'visually-hidden', role: 'status', 'aria-live': 'polite', id: 'said-answer' });
    this.rows = Array.from({ length: ROWS }, () => new Guess());
    this.familiarity = new Meter();
    this.details = h(
      'div',
      { class: 'details' },
      h('ol', { class: 'guesses', 'aria-label': text.live.guesses }, ...this.rows.map((row) => row.element)),
      this.familiarity.element,
    );
    this.element = h(
      'div',
      { class: 'answer card', 'data-kind': 'empty' },
      h('div', { class: 'answer-head' }, this.badge, h('div', { class: 'answer-words' }, this.title, this.sub), this.speed),
      this.said,
      this.details,
    );
    this.shares = new Map();
    this.order = [];
    this.drawn = 0;
    this.showNothing();
  }

  /** Nothing is learned: say what to do. */
  showNothing() {
    this.shares.clear();
    this.order = [];
    this.set('empty', text.live.nothing, text.live.nothingHint);
    show(this.details, false);
    setText(this.said, '');
  }

  /** No picture or no answer comes. */
  showWaiting(sentence = text.live.waiting) {
    this.set('waiting', sentence, '');
    show(this.details, false);
    setText(this.said, '');
  }

  /** Show what `predict` answered. */
  show(answer) {
    if (!answer.answers?.length) {
      this.showNothing();
      return;
    }
    this.smooth(answer.answers);
    const now = performance.now();
    if (now - this.drawn < PAUSE) {
      return;
    }
    this.drawn = now;
    show(this.details, true);
    this.drawSettled(answer.settled, answer.answers[0]);
    this.drawGuesses();
    this.familiarity.draw(answer.familiarity);
  }

  showSpeed(perSecond) {
    setText(this.speed, perSecond > 0 ? text.live.speed(perSecond) : '');
  }

  drawSettled(settled, best) {
    const kind = settled?.kind ?? 'unsure';
    if (kind === 'answer') {
      this.set(kind, settled.label, text.live.agreement(settled.share));
    } else if (kind === 'unknown') {
      this.set(kind, text.live.unknown, text.live.unknownHint);
    } else {
      this.set(kind, text.live.unsure, text.live.unsureHint(settled?.label ?? best.label));
    }
    const sentence = text.live.said[kind];
    setText(this.said, typeof sentence === 'function' ? sentence(settled.label) : sentence);
  }

  set(kind, title, sub) {
    if (this.element.dataset.kind !== kind) {
      this.element.dataset.kind = kind;
      const names = { answer: 'check', unknown: 'question', empty: 'plus', waiting: 'camera', unsure: 'more' };
      this.badge.replaceChildren(icon(names[kind]));
    }
    setText(this.title, title);
    setText(this.sub, sub);
  }

  /** Mix the newest probabilities into the bars, and keep their order unless one clearly leads. */
  smooth(answers) {
    // "unknown" is an answer without a slot; the settled answer says it.
    const newest = new Map(answers.filter((guess) => guess.slot >= 0).map((guess) => [guess.slot, guess]));
    for (const [slot, share] of this.shares) {
      share.value += SMOOTH * ((newest.get(slot)?.probability ?? 0) - share.value);
      if (share.value < 0.005 && !newest.has(slot)) {
        this.shares.delete(slot);
      }
    }
    for (const [slot, { label, probability }] of newest) {
      const share = this.shares.get(slot) ?? { value: probability };
      this.shares.set(slot, Object.assign(share, { label }));
    }
    const before = new Map(this.order.map((slot, at) => [slot, at]));
    const rank = (slot) => this.shares.get(slot).value + STEADY * Math.max(0, ROWS - (before.get(slot) ?? ROWS)) / ROWS;
    this.order = [...this.shares.keys()].sort((a, b) => rank(b) - rank(a)).slice(0, ROWS);
  }

  drawGuesses() {
    this.rows.forEach((row, at) => row.draw(this.shares.get(this.order[at])));
  }
}

class Guess {
  constructor() {
    this.name = h('span', { class: 'guess-name' });
    this.bar = h('span', { class: 'bar-fill' });
    this.value = h('span', { class: 'guess-value' });
    this.element = h('li', { class: 'guess' }, this.name, h('span', { class: 'bar', 'aria-hidden': 'true' }, this.bar), this.value);
  }

  draw(share) {
    this.element.classList.toggle('absent', !share);
    setText(this.name, share?.label ?? '');
    setText(this.value, share ? text.percent(share.value) : '');
    this.bar.style.setProperty('--share', (share?.value ?? 0).toFixed(3));
  }
}

class Meter {
  constructor() {
    this.bar = h('span', { class: 'bar-fill' });
    this.value = h('span', { class: 'guess-value' });
    this.element = h(
      'p',
      { class: 'guess familiarity', hidden: true },
      h('span', { class: 'guess-name' }, text.live.familiarity),
      h('span', { class: 'bar', 'aria-hidden': 'true' }, this.bar),
      this.value,
    );
    this.level = null;
  }

  draw(familiarity) {
    const told = familiarity !== null && familiarity !== undefined;
    show(this.element, told);
    if (told) {
      this.level = this.level === null ? familiarity : this.level + SMOOTH * (familiarity - this.level);
      setText(this.value, text.live.familiarityValue(this.level));
      this.bar.style.setProperty('--share', this.level.toFixed(3));
    }
  }
}
