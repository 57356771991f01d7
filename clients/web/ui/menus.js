// Dialogs of the head: check-up, saving and loading, settings, and the token.

import { listCameras } from '../frames/camera.js';
import { text } from '../text/index.js';
import { openDialog } from './dialog.js';
import { h, icon, setText } from './dom.js';
import { notice, sentenceOf } from './notices.js';
import { classThumb, fillThumb } from './thumbs.js';

// Kinds of actions that are about two classes, and most pictures shown with one.
const PAIRED = ['separate', 'contrast', 'remove'];
const SHOWN = 6;

/** Show what to improve, as the engine finds it. */
export async function openCheck(state) {
  const dialog = openDialog({
    title: text.check.title, name: 'check', wide: true,
    body: [h('p', { role: 'status' }, text.check.reading)],
  });
  try {
    const findings = await state.engine.diagnosis();
    dialog.content.replaceChildren(...findingsList(state, findings));
  } catch (error) {
    dialog.content.replaceChildren(h('p', { class: 'hint warning', role: 'alert' }, sentenceOf(error)));
  }
}

function findingsList(state, findings) {
  const about = [text.check.lookedAt(findings.looked_at), ...(findings.notes ?? [])];
  const hints = about.map((sentence) => h('p', { class: 'hint' }, sentence));
  if (!findings.actions.length) {
    return [h('p', { class: 'clear' }, icon('check'), text.check.fine), ...hints];
  }
  const actions = findings.actions.map((action) => actionLine(state, findings, action));
  return [h('p', {}, text.check.intro), h('ol', { class: 'findings' }, ...actions), ...hints];
}

/** An action, with the faces of its classes and the pictures that it is about. */
function actionLine(state, { confused = [], mislabelled = [] }, action) {
  const pair = confused.find((one) => one.label === action.label)?.answer
    ?? mislabelled.find((one) => one.label === action.label)?.looks_like;
  const labels = PAIRED.includes(action.kind) ? [action.label, pair] : [action.label];
  const faces = labels.map((label) => state.labelled(label)).filter(Boolean).map((entry) => {
    const image = h('img', { class: 'thumb', alt: entry.label });
    classThumb(image, state.engine, entry);
    return image;
  });
  const pictures = state.engine.can.pictures ? action.pictures.slice(0, SHOWN) : [];
  return h(
    'li',
    { class: 'finding' },
    faces.length ? h('div', { class: 'finding-faces' }, ...faces) : null,
    h(
      'div',
      {},
      h('p', {}, action.summary),
      pictures.length ? h('div', { class: 'samples' }, ...pictures.map((id) => {
        const image = h('img', { alt: '', hidden: true });
        fillThumb(image, `kept-${id}`, () => state.engine.keptPicture(id));
        return image;
      })) : null,
    ),
  );
}

/** Downloads, and the upload of a state. */
export function openFiles(state, { reload }) {
  const { engine } = state;
  const line = h('p', { class: 'hint', role: 'status' });
  const body = [];
  const offer = (title, hint, buttons) => body.push(
    h('div', { class: 'offer' }, h('div', {}, h('p', { class: 'strong' }, title), h('p', { class: 'hint' }, hint)), h('div', { class: 'row' }, ...buttons)),
  );
  const save = (label, name, fetchBlob, what) => {
    const button = h('button', { type: 'button', class: 'button', 'aria-label': `${label}: ${what}`, onclick: async () => {
      button.disabled = true;
      setText(line, text.files.making);
      try {
        download(await fetchBlob(), name);
        setText(line, '');
      } catch (error) {
        setText(line, sentenceOf(error));
      } finally {
        button.disabled = false;
      }
    } }, icon('disk'), label);
    return button;
  };
  const files = text.files;
  offer(files.state, files.stateHint, [save(files.save, files.names.state, () => engine.exportState(), files.state)]);
  if (engine.can.downloads) {
    offer(files.bundle, files.bundleHint, [save(files.save, files.names.bundle, () => engine.exportBundle(), files.bundle)]);
    offer(
      files.model,
      engine.can.model ? files.modelHint : files.noModel,
      engine.can.model ? ['float32', 'int8'].map((form) => save(files[form], files.names.model(form), () => engine.exportModel(form), files.model)) : [],
    );
  }
  const chooser = h('input', {
    type: 'file', accept: '.zip', class: 'visually-hidden', tabIndex: -1, 'aria-hidden': 'true', 'data-part': 'state',
    onchange: async () => {
      const [file] = chooser.files;
      if (!file) {
        return;
      }
      setText(line, text.common.working);
      try {
        const loaded = await engine.importState(file);
        dialog.close();
        notice(files.loaded(loaded.old_state), { id: 'files' });
        await reload();
      } catch (error) {
        setText(line, sentenceOf(error));
      } finally {
        chooser.value = '';
      }
    },
  });
  offer(files.load, files.loadHint, [h('button', { type: 'button', class: 'button', onclick: () => chooser.click() }, icon('up'), files.choose), chooser]);
  const dialog = openDialog({ title: files.title, name: 'files', wide: true, body: [...body, line] });
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = h('a', { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** Choices of this browser, and facts about the device. */
export async function openSettings(state) {
  const { about } = state.engine;
  const slider = (name, { min, max, value }) => {
    const shown = h('output', { class: 'strong' }, String(value));
    const input = h('input', {
      type: 'range', id: `setting-${name}`, min: String(min), max: String(max), step: '1', value: String(value),
      oninput: () => { setText(shown, input.value); state.choose({ [name]: Number(input.value) }); },
    });
    return h('div', { class: 'setting' }, h('label', { for: input.id }, text.settings[name]), shown, input);
  };
  const cameras = await listCameras().catch(() => []);
  const options = [
    ['', text.settings.automatic],
    ...(about.camera ? [['device', text.settings.device]] : []),
    ['facing:environment', text.settings.back],
    ['facing:user', text.settings.front],
    ...cameras.map((camera, at) => [`id:${camera.id}`, camera.label || text.settings.numbered(at + 1)]),
  ];
  const choice = h(
    'select',
    { class: 'field', id: 'setting-camera', onchange: () => state.choose({ camera: choice.value }) },
    ...options.map(([value, label]) => h('option', { value, selected: value === state.choices.camera }, label)),
  );
  const mirror = h('input', {
    type: 'checkbox', class: 'box', checked: state.choices.mirror ?? state.camera?.mirrored ?? false,
    onchange: () => state.choose({ mirror: mirror.checked }),
  });
  openDialog({
    title: text.settings.title,
    name: 'settings',
    body: [
      slider('seconds', { min: 2, max: 60, value: state.seconds }),
      slider('fps', { min: 1, max: 15, value: state.fps }),
      h('div', { class: 'setting' }, h('label', { for: choice.id }, text.settings.camera), choice),
      h('label', { class: 'row check' }, mirror, text.settings.mirror),
      h('hr', {}),
      h('p', { class: 'hint' }, text.settings.about(about.name, about.version)),
      h('p', { class: 'hint' }, text.settings.bundle(about.bundle)),
      about.state ? h('p', { class: 'hint' }, text.settings.stateFolder(about.state)) : null,
      h('p', { class: 'hint' }, about.keep_pictures ? text.settings.kept : text.settings.notKept),
      ...(about.notes ?? []).map((note) => h('p', { class: 'hint' }, note)),
    ].filter(Boolean),
  });
}

/** Ask for the token until the engine opens. */
export function askToken(engine, wrong) {
  return new Promise((resolve, reject) => {
    const input = h('input', { type: 'password', class: 'field', id: 'token', autocomplete: 'off', required: true });
    const problem = h('p', { class: 'hint warning', role: 'alert', hidden: !wrong }, text.token.wrong);
    const form = h(
      'form',
      {
        class: 'stack',
        onsubmit: async (event) => {
          event.preventDefault();
          engine.useToken(input.value.trim());
          try {
            const about = await engine.open();
            dialog.close();
            resolve(about);
          } catch (error) {
            if (error.reason === 'token' || error.reason === 'crowded') {
              setText(problem, error.reason === 'token' ? text.token.wrong : sentenceOf(error));
              problem.hidden = false;
              input.select();
            } else {
              dialog.close();
              reject(error);
            }
          }
        },
      },
      h('p', {}, text.token.explain),
      h('label', { class: 'label', for: 'token' }, text.token.name),
      input,
      problem,
      h('div', { class: 'row end' }, h('button', { type: 'submit', class: 'button primary' }, text.token.start)),
    );
    const dialog = openDialog({ title: text.token.title, body: [form], locked: true, name: 'token' });
  });
}
