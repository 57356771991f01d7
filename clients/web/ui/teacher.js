// A lesson from the camera, from the first frame to what was learned. No elements here.

import { EngineError } from '../engine/index.js';

// Longest lesson while a tile is held, in seconds.
const MAX_HELD = 120;

/**
 * Dispatches `change` while a lesson runs, `learned` (detail: what commit said), `failed` (an
 * error, or with `cancelled`) when it is over. `lesson` is null between lessons.
 */
export class Teacher extends EventTarget {
  constructor(state) {
    super();
    this.state = state;
    this.lesson = null;
    state.engine.addEventListener('lesson', ({ detail }) => this.heard(detail));
    state.addEventListener('camera-lost', () => !this.lesson?.remote && this.cancel(new EngineError('unplugged')));
  }

  get busy() {
    return this.lesson !== null;
  }

  /** Teach {label} or {slot}; `held` teaches until `finish`, `background` is for the panels. */
  async start(what, { label, held = false, background = false }) {
    if (this.busy) {
      return;
    }
    const { state } = this;
    const lesson = {
      what, label, held, background, slot: what.slot ?? null, remote: false,
      phase: 'starting', seconds: held ? MAX_HELD : state.seconds, fps: state.fps,
      began: null, elapsed: 0, taken: 0, frames: 0, hints: [], enough: false, id: null, ending: false,
    };
    this.lesson = lesson;
    this.changed();
    try {
      await state.cameraComing;
      lesson.remote = Boolean(state.camera?.remote);
      await (lesson.remote ? this.startRemote(lesson) : this.startHere(lesson));
    } catch (error) {
      this.fail(lesson, error);
      return;
    }
    if (lesson.ending) {
      this.finish();
    }
  }

  async startHere(lesson) {
    const opened = await this.state.engine.begin(lesson.what);
    if (this.lesson !== lesson) {
      await this.state.engine.cancel();
      return;
    }
    lesson.id = opened.id;
    lesson.phase = 'recording';
    lesson.began = performance.now();
    this.takeFrame(lesson);
    lesson.timer = setInterval(() => this.takeFrame(lesson), 1000 / lesson.fps);
    this.changed();
  }

  takeFrame(lesson) {
    if (this.lesson !== lesson || lesson.phase !== 'recording') {
      return;
    }
    lesson.elapsed = (performance.now() - lesson.began) / 1000;
    if (lesson.elapsed >= lesson.seconds || lesson.taken >= this.state.maxFrames) {
      this.finish();
      return;
    }
    const frame = this.state.camera?.frame(this.state.size);
    if (frame) {
      lesson.taken += 1;
      this.state.engine.collect(frame).then(
        (status) => this.collected(lesson, status),
        (error) => this.fail(lesson, error),
      );
    }
    this.changed();
  }

  collected(lesson, { frames, hints, enough }) {
    Object.assign(lesson, { frames, hints, enough });
    if (this.lesson === lesson) {
      this.changed();
    }
  }

  async startRemote(lesson) {
    const opened = await this.state.engine.teachFromCamera(lesson.what, lesson);
    if (this.lesson !== lesson) {
      await this.state.engine.cancelLesson(opened.id);
      return;
    }
    lesson.id = opened.id;
    lesson.phase = 'recording';
    lesson.began = performance.now();
    lesson.timer = setInterval(() => this.askRemote(lesson), 500);
    this.changed();
  }

  async askRemote(lesson) {
    lesson.elapsed = (performance.now() - lesson.began) / 1000;
    this.changed();
    try {
      this.collected(lesson, await this.state.engine.lessonStatus(lesson.id));
    } catch {
      // Its end comes as an event.
    }
  }

  /** Follow the lesson of the device's camera; events of other lessons are not ours. */
  heard(event) {
    const { lesson } = this;
    if (!lesson?.remote || event.id !== lesson.id || lesson.phase === 'committing') {
      return;
    }
    if (event.state === 'learning') {
      this.learns(lesson);
    } else if (event.state === 'learned') {
      this.succeed(lesson, event.report);
    } else if (event.state === 'cancelled') {
      this.fail(lesson, Object.assign(new Error('cancelled'), { cancelled: true }));
    } else if (event.state === 'failed') {
      this.fail(lesson, new EngineError('refused', event.error ?? {}));
    }
  }

  learns(lesson) {
    clearInterval(lesson.timer);
    lesson.phase = 'learning';
    this.changed();
  }

  /** Learn from what was shown so far. */
  async finish() {
    const { lesson } = this;
    if (!lesson || lesson.phase === 'learning' || lesson.phase === 'committing') {
      return;
    }
    if (lesson.phase === 'starting') {
      lesson.ending = true; // as soon as it has started
      return;
    }
    const { engine } = this.state;
    if (!lesson.remote && !lesson.taken) {
      this.cancel(new EngineError('empty'));
      return;
    }
    this.learns(lesson);
    try {
      if (lesson.remote) {
        lesson.phase = 'committing';
        this.succeed(lesson, await engine.commitLesson(lesson.id));
      } else {
        this.succeed(lesson, await engine.commit());
      }
    } catch (error) {
      this.fail(lesson, error);
    }
  }

  /** Stop without a trace. */
  cancel(reason = Object.assign(new Error('cancelled'), { cancelled: true })) {
    const { lesson } = this;
    if (!lesson || lesson.phase === 'learning' || lesson.phase === 'committing') {
      return;
    }
    this.fail(lesson, reason);
  }

  succeed(lesson, learned) {
    if (this.close(lesson)) {
      this.dispatchEvent(new CustomEvent('learned', { detail: { learned, lesson } }));
    }
  }

  fail(lesson, error) {
    if (!this.close(lesson)) {
      return;
    }
    const { engine } = this.state;
    const left = lesson.remote && lesson.id !== null ? engine.cancelLesson(lesson.id) : engine.cancel();
    left.catch(() => {}); // the device cancels a lesson that hears nothing more
    this.dispatchEvent(new CustomEvent('failed', { detail: { error, lesson } }));
  }

  close(lesson) {
    if (this.lesson !== lesson) {
      return false;
    }
    clearInterval(lesson.timer);
    this.lesson = null;
    this.changed();
    return true;
  }

  changed() {
    this.dispatchEvent(new Event('change'));
  }
}
