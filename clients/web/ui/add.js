// Adding from files: what will be learned, then its progress, thing by thing.

import { filmFrames } from '../frames/film.js';
import { grabPicture } from '../frames/grab.js';
import { BadZip, chosenFiles, droppedFiles, readSources } from '../import/sources.js';
import { text } from '../text/index.js';
import { openDialog } from './dialog.js';
import { h, icon, setText, show } from './dom.js';
import { complain, notice } from './notices.js';

const SAMPLES = 4; // small pictures of each thing in the preview
const LISTED = 5; // names of files that were left out

/** Let the whole page take dropped files. */
export function mountDrop(state, onLearned, isBusy) {
  const veil = h('div', { class: 'drop-veil', hidden: true, 'aria-hidden': 'true' }, icon('images'),
    h('p', { class: 'cover-title' }, text.add.drop), h('p', {}, text.add.dropHint));
  document.body.append(veil);
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');
  document.addEventListener('dragover', (event) => {
    if (hasFiles(event)) {
      event.preventDefault();
      show(veil, true);
    }
  });
  document.addEventListener('dragleave', (event) => !event.relatedTarget && show(veil, false));
  document.addEventListener('drop', async (event) => {
    if (hasFiles(event)) {
      event.preventDefault();
      show(veil, false);
      const files = droppedFiles(event.dataTransfer); // before the event is over
      if (!isBusy()) {
        new AddDialog(state, onLearned).take(await files);
      }
    }
  });
}

export class AddDialog {
  constructor(state, onLearned) {
    this.state = state;
    this.onLearned = onLearned;
    this.stopping = new AbortController();
    this.addresses = [];
    this.learning = false;
    this.dialog = openDialog({ title: text.add.title, wide: true, name: 'add', onclose: () => this.closed() });
    this.showChoice();
  }

  /** Leave no trace of what was not learned yet, also while the device learns. */
  closed() {
    this.stopping.abort(new DOMException('closed', 'AbortError'));
    this.addresses.forEach((address) => URL.revokeObjectURL(address));
    if (this.learning) {
      this.state.engine.cancel().catch(() => {}); // the device cancels a lesson that hears nothing more
    }
  }

  get stopped() {
    return this.stopping.signal.aborted;
  }

  showChoice(problem = '') {
    const chooser = (props) => h('input', {
      type: 'file', class: 'visually-hidden', multiple: true, tabIndex: -1, 'aria-hidden': 'true', ...props,
      onchange: (event) => event.target.files.length && this.take(chosenFiles(event.target.files)),
    });
    const files = chooser({ accept: 'image/*,video/*,.tm,.zip', 'data-part': 'files' });
    const folder = chooser({ webkitdirectory: true, 'data-part': 'folder' });
    this.dialog.content.replaceChildren(
      ...(problem ? [h('p', { class: 'hint warning', role: 'alert' }, problem)] : []),
      h('p', {}, text.add.explain),
      h(
        'div',
        { class: 'row' },
        h('button', { type: 'button', class: 'button primary', onclick: () => files.click() }, icon('images'), text.add.choose),
        'webkitdirectory' in folder ? h('button', { type: 'button', class: 'button', onclick: () => folder.click() }, text.add.chooseFolder) : null,
      ),
      files,
      folder,
    );
  }

  /** Look at files, given as {path, file}, and show what would be learned. */
  async take(files) {
    if (this.stopped) {
      return;
    }
    this.dialog.content.replaceChildren(h('p', { role: 'status' }, text.add.reading), h('div', { class: 'row end' }, this.cancelButton()));
    let found;
    try {
      found = await readSources(files, this.stopping.signal);
    } catch (error) {
      if (this.stopped) {
        return;
      }
      const broken = error instanceof BadZip ? text.add.badZip(error.file) : text.trouble.unexpected(error.message);
      this.showChoice(broken);
      return;
    }
    if (this.stopped) {
      return;
    }
    if (!found.things.length) {
      this.showChoice(text.add.nothing);
      return;
    }
    this.preview(found);
  }

  cancelButton() {
    return h('button', { type: 'button', class: 'button', onclick: () => this.dialog.close() }, text.common.cancel);
  }

  preview({ things, skipped }) {
    setText(this.dialog.heading, text.add.preview);
    this.rows = things.map((thing, at) => new ThingRow(thing, at, this));
    this.problem = h('p', { class: 'hint warning', role: 'alert', hidden: true });
    this.start = h('button', { type: 'submit', class: 'button primary' });
    const form = h(
      'form',
      { class: 'stack', onsubmit: (event) => { event.preventDefault(); this.learn(); } },
      h('ul', { class: 'add-list' }, ...this.rows.map((row) => row.element)),
      ...leftOut(skipped),
      this.problem,
      h('div', { class: 'row end' }, this.cancelButton(), this.start),
    );
    this.dialog.content.replaceChildren(form);
    this.check();
    this.rows.find((row) => !row.label)?.name.focus();
  }

  /** Say what keeps the button from being pressed. */
  check() {
    const wanted = this.rows.filter((row) => row.included);
    const labels = new Set(wanted.map((row) => row.label));
    const fresh = [...labels].filter((label) => !this.state.labelled(label)).length;
    const { free } = this.state.classes;
    this.rows.forEach((row) => row.tag(this.state));
    let problem = '';
    if (wanted.some((row) => !row.label)) {
      problem = text.add.unnamed;
    } else if (fresh > free) {
      problem = text.add.tooMany(fresh - free, free);
    }
    setText(this.start, text.add.start(labels.size));
    this.start.disabled = !wanted.length || Boolean(problem);
    setText(this.problem, problem);
    show(this.problem, Boolean(problem));
  }

  async learn() {
    const things = merged(this.rows.filter((row) => row.included));
    const bar = h('progress', { class: 'progress', max: things.length, value: 0 });
    const line = h('p', { role: 'status' }, text.common.working);
    this.dialog.content.replaceChildren(line, bar, h('div', { class: 'row end' }, this.cancelButton()));
    const done = [];
    const skipped = [];
    let stopped = false;
    this.learning = true;
    try {
      for (const [at, thing] of things.entries()) {
        await this.learnOne(thing, done, skipped, (sentence, share) => {
          setText(line, sentence);
          bar.value = at + share;
        });
      }
    } catch (error) {
      stopped = this.stopped;
      await this.state.engine.cancel().catch(() => {});
      if (!stopped) {
        complain(error, 'add');
      }
    }
    this.learning = false;
    this.dialog.close();
    this.tell(done, skipped, stopped);
  }

  tell(done, skipped, stopped) {
    const labels = [...new Set(done.map((learned) => learned.label))];
    if (skipped.length) {
      notice(`${text.add.skipped(skipped.length)} ${text.list(skipped.slice(0, LISTED))}`, { id: 'skipped', kind: 'error' });
    }
    if (stopped) {
      notice(text.add.stopped(labels), { id: 'add' });
    } else if (labels.length > 1) {
      notice(text.result.imported(labels.length), { id: 'add' });
    }
    if (done.length) {
      this.onLearned(done.at(-1));
    }
  }

  /** Learn one thing; each lesson that is committed goes to `done`. */
  async learnOne(thing, done, skipped, progress) {
    const { engine, maxFrames } = this.state;
    const { signal } = this.stopping;
    const known = this.state.labelled(thing.label);
    await engine.begin(known ? { slot: known.slot } : { label: thing.label });
    let frames = 0;
    for await (const frame of this.frames(thing, skipped)) {
      signal.throwIfAborted();
      if (frames && frames % maxFrames === 0) {
        done.push(await engine.commit()); // a lesson is full; another one goes on
        signal.throwIfAborted();
        await engine.begin({ slot: done.at(-1).slot });
      }
      await engine.collect(frame);
      frames += 1;
      progress(
        thing.films.length ? text.add.progressFilm(thing.label, frames) : text.add.progress(thing.label, frames, thing.pictures.length),
        thing.films.length ? 0 : frames / thing.pictures.length,
      );
    }
    signal.throwIfAborted();
    if (!frames) {
      await engine.cancel();
      notice(text.add.unreadable(thing.label), { id: `unreadable-${thing.label}`, kind: 'error' });
      return;
    }
    progress(text.add.learning(thing.label), 1);
    done.push(await engine.commit());
    this.state.setClasses(done.at(-1).classes);
  }

  async *frames(thing, skipped) {
    const { size, fps } = this.state;
    const { signal } = this.stopping;
    for (const item of thing.pictures) {
      let frame = null;
      try {
        frame = await grabPicture(await item.blob(), size);
      } catch {
        skipped.push(item.name);
      }
      if (frame) {
        yield frame;
      }
    }
    for (const item of thing.films) {
      try {
        yield* filmFrames(await namedFile(item), { size, fps, signal });
      } catch (error) {
        if (signal.aborted || error.name === 'EngineError') {
          throw error;
        }
        skipped.push(item.name);
      }
    }
  }
}

/** A line of the preview: whether to learn it, its name, its contents, a few pictures. */
class ThingRow {
  constructor(thing, at, owner) {
    this.thing = thing;
    this.box = h('input', { type: 'checkbox', class: 'box', checked: true, 'aria-label': text.add.include(thing.label || text.add.name), onchange: () => owner.check() });
    this.name = h('input', { type: 'text', class: 'field', value: thing.label, 'aria-label': text.add.name, placeholder: text.add.name, maxLength: 200, autocomplete: 'off', oninput: () => owner.check() });
    this.kind = h('span', { class: 'tag' });
    const samples = h('div', { class: 'samples', 'aria-hidden': 'true' });
    this.element = h('li', { class: 'add-row', 'data-row': String(at) },
      h('label', { class: 'box-place' }, this.box),
      h('div', { class: 'add-main' }, this.name,
        h('p', { class: 'hint' }, text.add.contents(thing.pictures.length, thing.films.length), ' · ', this.kind)),
      samples);
    this.fill(samples, owner);
  }

  async fill(samples, owner) {
    for (const item of this.thing.pictures.slice(0, SAMPLES)) {
      try {
        const blob = await item.blob();
        if (owner.stopped) {
          return;
        }
        const address = URL.createObjectURL(blob);
        owner.addresses.push(address);
        samples.append(h('img', { src: address, alt: '' }));
      } catch {
        // Learning says which files cannot be read.
      }
    }
  }

  get included() {
    return this.box.checked;
  }

  get label() {
    return this.name.value.trim();
  }

  tag(state) {
    const known = Boolean(state.labelled(this.label));
    setText(this.kind, known ? text.add.known : text.add.fresh);
    this.kind.classList.toggle('known', known);
  }
}

/** Join rows of one name. */
function merged(rows) {
  const things = new Map();
  for (const { label, thing } of rows) {
    const joined = things.get(label) ?? { label, pictures: [], films: [] };
    joined.pictures.push(...thing.pictures);
    joined.films.push(...thing.films);
    things.set(label, joined);
  }
  return [...things.values()];
}

function leftOut(skipped) {
  return skipped.length
    ? [h('p', { class: 'hint warning' }, text.add.skipped(skipped.length), ' ', text.list(skipped.slice(0, LISTED)))]
    : [];
}

async function namedFile(item) {
  const blob = await item.blob();
  return blob instanceof File ? blob : new File([blob], item.name);
}
