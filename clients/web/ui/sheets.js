// The sheet of a thing (rename, pictures, forget), and its kept pictures.

import { text } from '../text/index.js';
import { openDialog } from './dialog.js';
import { h, icon, setText, show } from './dom.js';
import { complain, notice } from './notices.js';
import { classThumb, fillThumb } from './thumbs.js';

/** `actions`: rename(slot, label), forget(entry), learned(answer). */
export function openSheet(state, entry, actions) {
  const image = h('img', { class: 'thumb large', alt: '' });
  classThumb(image, state.engine, entry);
  const input = h('input', { type: 'text', class: 'field', id: 'sheet-name', value: entry.label, maxLength: 200, autocomplete: 'off', spellcheck: false });
  const rename = h(
    'form',
    {
      class: 'stack',
      onsubmit: async (event) => {
        event.preventDefault();
        const name = input.value.trim();
        if (!name || name === entry.label) {
          dialog.close();
        } else if (await actions.rename(entry.slot, name)) {
          dialog.close();
        }
      },
    },
    h('label', { for: 'sheet-name', class: 'label' }, text.sheet.name),
    h('div', { class: 'row fill' }, input, h('button', { type: 'submit', class: 'button primary' }, text.sheet.rename)),
  );
  const { pictures } = state.engine.can;
  const dialog = openDialog({
    title: text.sheet.title(state.nameOf(entry)),
    name: 'sheet',
    body: [
      h('div', { class: 'sheet-head' }, image, h('div', {}, h('p', { class: 'strong' }, text.sheet.taught(entry.pictures)),
        h('p', { class: 'hint' }, pictures ? text.sheet.kept : text.sheet.notKept))),
      entry.background ? h('p', { class: 'hint' }, text.background.hint) : rename,
      pictures && entry.kept
        ? h('button', { type: 'button', class: 'button block', onclick: () => { dialog.close(); openKept(state, entry, actions); } }, icon('images'), text.sheet.pictures(entry.kept))
        : null,
      h('hr', {}),
      h('button', { type: 'button', class: 'button block danger', 'data-action': 'forget', onclick: () => { dialog.close(); actions.forget(entry); } }, icon('trash'), text.sheet.forget),
      h('p', { class: 'hint' }, text.sheet.forgetHint),
    ].filter(Boolean),
  });
  return dialog;
}

/** Show the kept pictures of a class: delete, move, learn again. */
export function openKept(state, entry, actions) {
  return new KeptDialog(state, entry, actions);
}

class KeptDialog {
  constructor(state, entry, actions) {
    this.state = state;
    this.entry = entry;
    this.actions = actions;
    this.chosen = new Set();
    this.list = h('ul', { class: 'kept-list' });
    this.count = h('p', { class: 'strong', role: 'status' });
    this.drop = h('button', { type: 'button', class: 'button danger', onclick: () => this.remove() }, icon('trash'), text.common.delete);
    this.target = h('select', { class: 'field', 'aria-label': text.kept.move, onchange: () => this.move() });
    this.bar = h('div', { class: 'row kept-bar', hidden: true }, this.count, this.drop, this.target);
    this.again = h('button', { type: 'button', class: 'button primary', onclick: () => this.relearn() }, text.kept.relearn);
    this.dialog = openDialog({
      title: text.kept.title(state.called(entry.label)),
      name: 'kept',
      wide: true,
      body: [h('p', { class: 'hint' }, text.kept.hint), this.list, this.bar, h('div', { class: 'row end' }, this.again)],
    });
    this.load();
  }

  async load() {
    try {
      this.items = await this.state.engine.pictures(this.entry.slot);
    } catch (error) {
      this.dialog.close();
      complain(error, 'kept');
      return;
    }
    this.chosen.clear();
    this.list.replaceChildren(...(this.items.length ? this.items.map((item, at) => this.place(item, at)) : [h('li', {}, text.kept.empty)]));
    this.drawBar();
  }

  place(item, at) {
    const image = h('img', { alt: '', draggable: false });
    fillThumb(image, `kept-${item.id}`, () => this.state.engine.keptPicture(item.id));
    const button = h('button', {
      type: 'button', class: 'tray-item', 'aria-pressed': 'false', 'aria-label': text.kept.picture(at + 1),
      onclick: () => {
        if (!this.chosen.delete(item.id)) {
          this.chosen.add(item.id);
        }
        button.setAttribute('aria-pressed', String(this.chosen.has(item.id)));
        this.drawBar();
      },
    }, image);
    return h('li', {}, button);
  }

  drawBar() {
    show(this.bar, this.chosen.size > 0);
    setText(this.count, text.kept.chosen(this.chosen.size));
    const others = this.state.learned.filter((entry) => entry.slot !== this.entry.slot);
    this.target.replaceChildren(h('option', { value: '' }, text.kept.move), ...others.map((entry) => h('option', { value: String(entry.slot) }, this.state.nameOf(entry))));
    show(this.target, others.length > 0);
    this.again.disabled = !this.items?.length;
  }

  remove() {
    const n = this.chosen.size;
    return this.work((id) => this.state.engine.dropPicture(id), text.said.deleted(n));
  }

  move() {
    const slot = Number(this.target.value);
    const entry = this.state.entry(slot);
    if (entry) {
      this.work((id) => this.state.engine.movePicture(id, slot), text.said.moved(this.chosen.size, this.state.called(entry.label)));
    }
  }

  async work(task, done) {
    try {
      for (const id of this.chosen) {
        await task(id);
      }
      notice(done, { id: 'kept' });
    } catch (error) {
      complain(error, 'kept');
    }
    await this.load();
  }

  async relearn() {
    this.again.disabled = true;
    try {
      const learned = await this.state.engine.relearn(this.entry.slot);
      this.dialog.close();
      this.actions.learned(learned);
    } catch (error) {
      this.again.disabled = false;
      complain(error, 'kept');
    }
  }
}
