// The live view: the picture with the centre crop marked, and the settled answer below it.

import { text } from '../text/index.js';
import { h, icon, setText, show, svg } from './dom.js';

const ROUND = 1000; // path length of the ring

/** The stage: a camera's picture, the marked square, the ring of a lesson, what keeps it away. */
export class Stage {
  constructor({ onSwitch }) {
    this.holder = h('div', { class: 'picture', role: 'img', 'aria-label': text.live.picture });
    this.progress = svg('circle', { class: 'ring-progress', cx: 50, cy: 50, r: 46, pathLength: ROUND });
    this.ring = svg(
      'svg',
      { class: 'ring', viewBox: '0 0 100 100', 'aria-hidden': 'true' },
      svg('circle', { class: 'ring-track', cx: 50, cy: 50, r: 46 }),
      this.progress,
    );
    this.hint = h('p', { class: 'stage-hint', hidden: true, role: 'status' });
    this.square = h('div', { class: 'square', 'aria-hidden': 'true' }, h('i'), h('i'), h('i'), h('i'), this.ring);
    this.cover = h('div', { class: 'cover' });
    this.switch = h(
      'button',
      { type: 'button', class: 'icon-button on-picture switch', hidden: true, 'aria-label': text.live.switch, title: text.live.switch, onclick: onSwitch },
      icon('flip'),
    );
    this.element = h('div', { class: 'stage' }, this.holder, this.square, this.hint, this.switch, this.cover);
  }

  /** Show a camera's picture. */
  showCamera(camera, mirrored) {
    this.holder.replaceChildren(camera.picture);
    camera.picture.setAttribute('aria-hidden', 'true');
    this.holder.classList.toggle('mirrored', mirrored);
    this.uncover();
    this.fitTo(camera.picture);
    camera.picture.onresize = () => this.fitTo(camera.picture);
  }

  /** Give the stage the picture's own shape, between square and 16:9; a taller one is cropped. */
  fitTo(picture) {
    const width = picture.videoWidth || picture.width;
    const height = picture.videoHeight || picture.height;
    if (width && height) {
      const shape = Math.min(Math.max(width / height, 1), 16 / 9);
      this.element.style.setProperty('--shape', shape.toFixed(4));
    }
  }

  uncover() {
    show(this.cover, false);
  }

  /** Say in the picture's place why there is none; `actions` are {label, run}. */
  coverWith(sentences, actions = [], kind = 'info') {
    const [first, ...others] = sentences;
    this.cover.replaceChildren(
      icon(kind === 'error' ? 'warning' : 'camera'),
      h('p', { class: 'cover-title', role: kind === 'error' ? 'alert' : 'status' }, first),
      ...others.map((sentence) => h('p', {}, sentence)),
      h(
        'div',
        { class: 'row centre' },
        ...actions.map(({ label, run }, at) =>
          h('button', { type: 'button', class: `button ${at ? '' : 'primary'}`, onclick: run }, label)),
      ),
    );
    show(this.cover, true);
  }

  /** Fill the ring to a share of 0 to 1; null takes it away. */
  fillRing(share) {
    this.element.classList.toggle('teaching', share !== null);
    this.progress.setAttribute('stroke-dasharray', `${(share ?? 0) * ROUND} ${ROUND}`);
  }

  showHint(sentence) {
    show(this.hint, Boolean(sentence));
    setText(this.hint, sentence ?? '');
  }
}
