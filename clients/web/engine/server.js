// The engine on the device that serves this page: its learner, behind HTTP.

import { EngineError } from './errors.js';
import { listen } from './events.js';
import { Http } from './http.js';
import { ServerLesson } from './lesson.js';

/**
 * Events: `classes`, `answer`, `lesson`, `tray`, `camera` (details as in docs/serve.md), `offline`,
 * `online`, `replaced` (another bundle after a restart).
 */
export class ServerEngine extends EventTarget {
  constructor(http = new Http()) {
    super();
    this.http = http;
    this.about = null;
    this.lesson = null;
    // Each page has a settled answer of its own.
    this.stream = crypto.getRandomValues(new Uint32Array(2)).join('-');
    this.closing = new AbortController();
    http.addEventListener('offline', () => this.tell('offline'));
    http.addEventListener('online', () => this.reopen());
  }

  async open() {
    this.about = await this.http.json('GET', '');
    return this.about;
  }

  get frameSize() {
    return this.about.bundle.input_size;
  }

  get can() {
    const { camera, keep_pictures: pictures, can_export_model: model } = this.about;
    return { tray: true, diagnosis: true, downloads: true, model, pictures, camera: Boolean(camera) };
  }

  listen() {
    listen(this.http, '/events', (name, value) => this.tell(name, value), this.closing.signal);
  }

  async reopen() {
    const before = this.about;
    try {
      await this.open();
    } catch (error) {
      this.tell('trouble', error);
      return;
    }
    if (before && before.bundle.id !== this.about.bundle.id) {
      this.tell('replaced');
      return;
    }
    this.tell('online');
  }

  tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  useToken(text) {
    this.http.token = text;
  }

  classes() {
    return this.http.json('GET', '/classes');
  }

  thumbnail(slot) {
    return this.http.blob(`/classes/${slot}/thumbnail`);
  }

  predict(frame) {
    return this.http.bytes('POST', `/predict?stream=${this.stream}&top=3`, frame);
  }

  async begin(what) {
    this.lesson = new ServerLesson(this.http, await this.http.json('POST', '/lessons', what));
    return this.lesson;
  }

  collect(frame) {
    return this.lesson.collect(frame);
  }

  async commit() {
    try {
      return await this.lesson.commit();
    } finally {
      this.lesson = null;
    }
  }

  async cancel() {
    const { lesson } = this;
    this.lesson = null;
    await lesson?.cancel();
  }

  undo() {
    return this.http.json('POST', '/undo');
  }

  rename(slot, label) {
    return this.http.json('PATCH', `/classes/${slot}`, { label });
  }

  forget(slot) {
    return this.http.json('DELETE', `/classes/${slot}`);
  }

  exportState() {
    return this.http.blob('/state');
  }

  async importState(blob) {
    return this.http.bytes('PUT', '/state', blob, { type: 'application/zip' });
  }

  // What follows is optional: an engine says with `can` whether it has it.

  /** Teach from the device's camera; progress comes as `lesson` events. */
  teachFromCamera(what, { seconds, fps }) {
    return this.http.json('POST', '/teach', { ...what, seconds, fps });
  }

  lessonStatus(id) {
    return this.http.json('GET', `/lessons/${encodeURIComponent(id)}`);
  }

  commitLesson(id) {
    return this.http.json('POST', `/lessons/${encodeURIComponent(id)}/commit`);
  }

  cancelLesson(id) {
    const path = `/lessons/${encodeURIComponent(id)}`;
    return this.http.json('DELETE', path, undefined, { keepalive: true });
  }

  async cameraFrame(after, signal) {
    const query = after < 0 ? '' : `?after=${after}`;
    const response = await this.http.send('GET', `/camera/frame${query}`, { signal });
    if (response.status === 204) {
      return null;
    }
    return { number: Number(response.headers.get('X-Frame')), blob: await response.blob() };
  }

  tray() {
    return this.http.json('GET', '/tray');
  }

  trayPicture(id) {
    return this.http.blob(`/tray/${encodeURIComponent(id)}`);
  }

  teachTray(ids, what) {
    return this.http.json('POST', '/tray/teach', { ids, ...what });
  }

  dropTray(ids) {
    return this.http.json('DELETE', `/tray?ids=${ids.map(encodeURIComponent).join(',')}`);
  }

  pictures(slot) {
    return this.http.json('GET', `/pictures?slot=${slot}`);
  }

  keptPicture(id) {
    return this.http.blob(`/pictures/${encodeURIComponent(id)}`);
  }

  dropPicture(id) {
    return this.http.json('DELETE', `/pictures/${encodeURIComponent(id)}`);
  }

  movePicture(id, slot) {
    return this.http.json('POST', `/pictures/${encodeURIComponent(id)}/move`, { slot });
  }

  relearn(slot) {
    return this.http.json('POST', `/classes/${slot}/relearn`);
  }

  diagnosis() {
    return this.http.json('GET', '/diagnosis');
  }

  exportBundle() {
    return this.http.blob('/bundle');
  }

  exportModel(form) {
    return this.http.blob(`/model?form=${form}`);
  }

  close() {
    this.closing.abort();
  }
}

export { EngineError };
