// The page: opens the engine, then puts the parts together.

import { BACKGROUND, createEngine } from './engine/index.js';
import { listCameras } from './frames/camera.js';
import { loadText, text } from './text/index.js';
import { AddDialog, mountDrop } from './ui/add.js';
import { AnswerPanel } from './ui/answer.js';
import { Cameras } from './ui/cameras.js';
import { askName } from './ui/dialog.js';
import { h, icon, setText, show } from './ui/dom.js';
import { LessonPanel } from './ui/lesson.js';
import { Stage } from './ui/live.js';
import { askToken, openCheck, openFiles, openSettings } from './ui/menus.js';
import { complain, dismiss, mountNotices, notice, sentenceOf } from './ui/notices.js';
import { Predictor } from './ui/predictor.js';
import { ResultPanel } from './ui/result.js';
import { openSheet } from './ui/sheets.js';
import { PageState } from './ui/state.js';
import { Teacher } from './ui/teacher.js';
import { Tiles } from './ui/tiles.js';
import { Tray } from './ui/tray.js';

class Page {
  constructor(engine) {
    this.engine = engine;
    this.state = new PageState(engine);
    this.teacher = new Teacher(this.state);
    this.stage = new Stage({ onSwitch: () => this.cameras.switchSide() });
    this.cameras = new Cameras(this.state, this.stage, { addFiles: () => this.addFiles() });
    this.answer = new AnswerPanel();
    this.lesson = new LessonPanel(this.teacher, this.state, this.stage);
    this.result = new ResultPanel(this.state, {
      undo: () => this.undo(),
      rename: (slot, label) => this.rename(slot, label),
      again: (learned) => this.teachAgain(this.state.entry(learned.slot)),
    });
    this.tiles = new Tiles(this.state, this.teacher, {
      teach: (entry) => this.teach(entry),
      teachHeld: (entry) => this.teachHeld(entry),
      teachBackground: (how) => this.teachBackground(how),
      release: () => this.teacher.finish(),
      giveUp: () => this.teacher.cancel(),
      options: (entry) => this.options(entry),
      add: () => this.addFiles(),
    });
    this.tray = new Tray(this.state, (learned) => this.learned(learned));
    this.predictor = new Predictor(this.state, () => this.teacher.busy);
    this.mount();
    this.connect();
  }

  mount() {
    const action = (name, symbol, label, run) =>
      h('button', { type: 'button', class: 'button quiet', 'data-action': name, title: label, onclick: run }, icon(symbol), h('span', { class: 'button-text' }, label));
    this.undoButton = action('undo', 'undo', text.head.undo, () => this.undo());
    const head = h(
      'header',
      { class: 'head' },
      h('a', { class: 'skip', href: '#things' }, text.head.skip),
      h('h1', {}, text.title),
      h(
        'div',
        { class: 'head-actions' },
        this.undoButton,
        action('check', 'heart', text.head.check, () => openCheck(this.state)),
        action('files', 'disk', text.head.files, () => openFiles(this.state, { reload: () => this.load() })),
        action('settings', 'gear', text.head.settings, () => openSettings(this.state)),
      ),
    );
    const live = h('section', { class: 'live', 'aria-label': text.live.section }, this.stage.element, this.lesson.element, this.answer.element);
    const side = h('div', { class: 'side' }, this.result.element, this.tiles.element, this.tray.element);
    document.getElementById('app').replaceChildren(head, mountNotices(), h('main', { class: 'main' }, live, side));
    mountDrop(this.state, (learned) => this.learned(learned), () => this.teacher.busy || document.querySelector('dialog[open]'));
  }

  connect() {
    const { engine, state, teacher, predictor } = this;
    engine.addEventListener('classes', ({ detail }) => state.setClasses(detail));
    engine.addEventListener('hello', ({ detail }) => detail.classes && state.setClasses(detail.classes.classes ? detail.classes : state.classes));
    engine.addEventListener('offline', () => this.wentOffline());
    engine.addEventListener('online', () => this.cameOnline());
    engine.addEventListener('trouble', ({ detail }) => this.trouble(detail));
    engine.addEventListener('replaced', () => this.reloadPage());
    engine.addEventListener('lesson', ({ detail }) => this.otherLesson(detail));
    engine.addEventListener('camera', ({ detail }) => this.deviceCamera(detail));
    state.addEventListener('classes', () => this.drawUndo());
    state.addEventListener('camera', () => this.cameraChanged());
    teacher.addEventListener('change', () => this.teaching());
    teacher.addEventListener('learned', ({ detail }) => this.learned(detail.learned));
    teacher.addEventListener('failed', ({ detail }) => this.failed(detail));
    predictor.addEventListener('answer', ({ detail }) => this.answer.show(detail));
    predictor.addEventListener('trouble', ({ detail }) => this.trouble(detail));
    // A page that closes in a lesson leaves no trace, at once.
    window.addEventListener('pagehide', () => teacher.cancel());
    setInterval(() => this.answer.showSpeed(predictor.speed), 1000);
  }

  async start() {
    await this.load();
    // What is known of the bundle stays until something is learned.
    for (const note of this.engine.about.notes ?? []) {
      notice(note, { id: 'note', stays: !this.state.learned.length });
    }
    this.engine.listen();
    await this.cameras.open();
  }

  async load() {
    this.state.setClasses(await this.engine.classes());
    await this.tray.load();
  }

  drawUndo() {
    const { can_undo: can, last_change: change } = this.state.classes;
    this.undoButton.disabled = !can;
    this.undoButton.title = text.head.undoHint(can ? change : null);
    this.undoButton.setAttribute('aria-label', text.head.undoHint(can ? change : null));
  }

  async cameraChanged() {
    const { camera } = this.state;
    if (!camera) {
      this.answer.showWaiting();
    }
    const several = camera && !camera.remote && (await listCameras().catch(() => [])).length > 1;
    show(this.stage.switch, Boolean(several));
  }

  /** An answer about a picture of before must not stay. */
  deviceCamera({ state: told }) {
    if (told === 'lost' && this.state.camera?.remote) {
      this.answer.showWaiting();
    }
  }

  teaching() {
    const { busy } = this.teacher;
    show(this.answer.element, !busy);
    if (busy) {
      this.result.hide();
    }
  }

  /** Teach a class, or a new one after asking for its name. */
  teach(entry) {
    if (this.teacher.busy) {
      return;
    }
    if (!this.state.camera && !this.state.cameraComing) {
      this.addFiles();
      return;
    }
    if (entry) {
      this.teacher.start({ slot: entry.slot }, { label: entry.label });
      return;
    }
    askName({
      title: text.fresh.title,
      label: text.fresh.name,
      start: text.fresh.start,
      suggested: this.state.freshName(text.fresh.suggested),
      hint: text.fresh.how(this.state.seconds),
      onname: (label) => this.teacher.start(this.whatOf(label), { label: this.state.called(label) }),
      name: 'fresh',
    });
  }

  whatOf(label) {
    const known = this.state.labelled(label);
    return known ? { slot: known.slot } : { label };
  }

  teachHeld(entry) {
    if (this.teacher.busy || !(this.state.camera || this.state.cameraComing)) {
      return;
    }
    const label = entry?.label ?? this.state.freshName(text.fresh.suggested);
    this.teacher.start(entry ? { slot: entry.slot } : { label }, { label, held: true });
  }

  /** Teach the place without a thing: no name is asked for. */
  teachBackground({ held = false } = {}) {
    if (this.teacher.busy || (held && !(this.state.camera || this.state.cameraComing))) {
      return;
    }
    if (!this.state.camera && !this.state.cameraComing) {
      this.addFiles();
      return;
    }
    const entry = this.state.background;
    const label = text.background.called;
    this.teacher.start(entry ? { slot: entry.slot } : { label: BACKGROUND }, { label, held, background: true });
  }

  teachAgain(entry) {
    if (entry?.background) {
      this.teachBackground();
    } else {
      this.teach(entry);
    }
  }

  learned(learned) {
    if (learned.classes) {
      this.state.setClasses(learned.classes);
    }
    dismiss('lesson');
    dismiss('note');
    this.result.show(learned, { canTeach: Boolean(this.state.camera) });
    this.result.element.scrollIntoView({ block: 'nearest' });
  }

  failed({ error, lesson }) {
    if (error.cancelled) {
      notice(text.teach.cancelled(lesson.label), { id: 'lesson' });
    } else if (error.reason === 'lost') {
      notice(text.teach.lost(lesson.label), { id: 'lesson', kind: 'error' });
    } else if (error.reason === 'empty') {
      notice(text.teach.noFrames, { id: 'lesson', kind: 'error' });
    } else if (error.reason === 'unplugged') {
      notice(text.teach.unplugged(lesson.label), { id: 'lesson', kind: 'error' });
    } else {
      complain(error, 'lesson');
    }
  }

  /** Say what another page or camera teaches, while it does. */
  otherLesson({ id, label, state }) {
    const own = this.teacher.lesson;
    const running = state === 'recording' || state === 'learning';
    if (running && !(own && (own.id === id || own.id === null || own.label === label))) {
      notice(text.teach.elsewhere(this.state.called(label)), { id: 'elsewhere', stays: true });
    } else {
      dismiss('elsewhere');
    }
  }

  async undo() {
    const change = this.state.classes.last_change;
    await this.change(() => this.engine.undo(), text.result.undone(change), false);
    this.result.hide();
  }

  rename(slot, label) {
    const before = this.state.entry(slot)?.label ?? '';
    return this.change(() => this.engine.rename(slot, label), text.said.renamed(before, label), false);
  }

  forget(entry) {
    this.result.hide();
    return this.change(() => this.engine.forget(entry.slot), text.said.forgot(this.state.called(entry.label)));
  }

  /** Run a change of the classes and say that it is done; return whether it was. */
  async change(task, said, undoable = true) {
    try {
      this.state.setClasses(await task());
      const action = undoable && this.state.classes.can_undo ? { label: text.head.undo, run: () => this.undo() } : null;
      notice(said, { id: 'change', action });
      return true;
    } catch (error) {
      this.trouble(error, 'change');
      return false;
    }
  }

  options(entry) {
    openSheet(this.state, entry, {
      rename: (slot, label) => this.rename(slot, label),
      forget: (one) => this.forget(one),
      learned: (learned) => this.learned(learned),
    });
  }

  addFiles() {
    if (!this.teacher.busy) {
      return new AddDialog(this.state, (learned) => this.learned(learned));
    }
    return null;
  }

  trouble(error, id = 'trouble') {
    if (error?.reason === 'token') {
      this.askAgain();
    } else {
      complain(error, id);
    }
  }

  async askAgain() {
    if (!document.querySelector('dialog[data-name=token]')) {
      await askToken(this.engine, true).catch((error) => complain(error));
      await this.load().catch((error) => complain(error));
    }
  }

  wentOffline() {
    this.state.setOnline(false);
    this.answer.showWaiting(text.live.away);
    notice(text.trouble.offline, { id: 'offline', kind: 'error' });
  }

  async cameOnline() {
    this.state.setOnline(true);
    dismiss('offline');
    notice(text.trouble.online, { id: 'online' });
    try {
      await this.load();
    } catch (error) {
      this.trouble(error);
    }
  }

  reloadPage() {
    notice(text.trouble.replaced, { id: 'offline', kind: 'error' });
    setTimeout(() => location.reload(), 1500);
  }
}

/** Open the engine, asking for a token and waiting for the server as long as it takes. */
async function open(engine) {
  for (;;) {
    try {
      return await engine.open();
    } catch (error) {
      if (error.reason === 'token') {
        return askToken(engine, Boolean(engine.http?.token));
      }
      if (error.reason !== 'offline') {
        throw error;
      }
      setText(document.getElementById('opening'), text.trouble.offline);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}

async function main() {
  document.documentElement.lang = await loadText();
  document.title = text.title;
  const place = document.getElementById('app');
  place.replaceChildren(h('p', { id: 'opening', class: 'opening', role: 'status' }, text.common.working));
  try {
    const engine = createEngine();
    await open(engine);
    const page = new Page(engine);
    await page.start();
  } catch (error) {
    console.error(error);
    const sentence = h('p', { class: 'opening', role: 'alert' }, sentenceOf(error));
    if (document.getElementById('notices')) {
      complain(error);
    } else {
      place.replaceChildren(sentence, h('p', { class: 'opening' }, h('button', { type: 'button', class: 'button', onclick: () => location.reload() }, text.common.retry)));
    }
  }
}

main();
