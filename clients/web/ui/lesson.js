// While teaching: what is being taught, how far, what to do better, and the way out.

import { text } from '../text/index.js';
import { h, setText, show } from './dom.js';

export class LessonPanel {
  constructor(teacher, state, stage) {
    this.teacher = teacher;
    this.state = state;
    this.stage = stage;
    this.title = h('h2', { class: 'lesson-title' });
    this.taken = h('span', { class: 'strong' });
    this.left = h('span', {});
    this.enough = h('div', { class: 'enough', hidden: true, role: 'status' },
      h('p', {}, h('strong', {}, text.teach.enough), h('br'), text.teach.enoughHint));
    this.stop = h('button', { type: 'button', class: 'button primary', onclick: () => teacher.finish() }, text.teach.stop);
    this.cancel = h('button', { type: 'button', class: 'button', onclick: () => teacher.cancel() }, text.common.cancel);
    this.waiting = h('p', { class: 'hint warning', role: 'status', hidden: true }, text.teach.waiting);
    this.element = h(
      'div',
      { class: 'lesson card', hidden: true, 'data-part': 'lesson' },
      this.title,
      h('p', { class: 'lesson-numbers' }, this.taken, this.left),
      this.enough,
      this.waiting,
      h('div', { class: 'row' }, this.stop, this.cancel),
    );
    teacher.addEventListener('change', () => this.draw());
    state.addEventListener('online', () => this.draw());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && teacher.busy && !document.querySelector('dialog[open]')) {
        teacher.cancel();
      }
    });
  }

  draw() {
    const { lesson } = this.teacher;
    const began = this.element.hidden && lesson;
    show(this.element, Boolean(lesson));
    if (!lesson) {
      this.stage.fillRing(null);
      this.stage.showHint('');
      return;
    }
    const learning = lesson.phase === 'learning' || lesson.phase === 'committing';
    const share = learning ? 1 : Math.min(1, lesson.elapsed / lesson.seconds);
    this.stage.fillRing(lesson.held ? Math.min(1, lesson.elapsed / this.state.seconds) : share);
    this.stage.showHint(learning ? text.teach.learning : this.hintFor(lesson));
    setText(this.title, learning ? text.teach.learning : text.teach.title(lesson.label));
    setText(this.taken, text.teach.so(Math.max(lesson.taken, lesson.frames)));
    setText(this.left, learning ? '' : this.timeLeft(lesson));
    show(this.enough, lesson.enough && !learning);
    show(this.waiting, !this.state.online);
    this.stop.disabled = learning;
    this.cancel.disabled = learning;
    if (began && !lesson.held && window.matchMedia('(max-width: 60rem)').matches) {
      this.stage.element.scrollIntoView({ block: 'start' });
    }
  }

  timeLeft(lesson) {
    return lesson.held ? text.teach.held : text.teach.left(Math.max(0, Math.ceil(lesson.seconds - lesson.elapsed)));
  }

  hintFor(lesson) {
    if (lesson.phase === 'starting') {
      return lesson.background ? text.background.lesson : text.teach.getReady;
    }
    const [first] = lesson.hints ?? [];
    if (lesson.background) {
      // An empty place is always the same, and a plain one looks blurred.
      return first === 'dark' ? text.teach.hints.dark : text.background.lesson;
    }
    return text.teach.hints[first] ?? text.teach.good;
  }
}
