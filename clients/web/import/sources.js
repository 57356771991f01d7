// Dropped or chosen files as things to learn: {label, pictures: [item], films: [item]}, where an
// item is {name, blob()}. Folders name things; loose files are one thing without a name.

import { isFilm } from '../frames/film.js';
import { readZip } from './zip.js';

const PICTURE = /\.(jpe?g|png|webp|bmp|gif|avif)$/i;
const ZIP = /\.(tm|zip)$/i;

/** Thrown for a zip that cannot be read; `file` is its name. */
export class BadZip extends Error {
  constructor(file, cause) {
    super(file, { cause });
    this.file = file;
  }
}

/** Return {path, file} of everything dropped, with folders walked through. */
export async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) {
    return chosenFiles(transfer.files);
  }
  const found = [];
  for (const entry of entries) {
    await walk(entry, found);
  }
  return found;
}

/** Return {path, file} of files from a file button. */
export function chosenFiles(files) {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

async function walk(entry, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ path: entry.fullPath.replace(/^\//, ''), file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) {
      return;
    }
    for (const child of some) {
      await walk(child, found);
    }
  }
}

/** Sort files into things; returns {things, skipped}, with the names of files that are neither. */
export async function readSources(files) {
  const things = new Map();
  const skipped = [];
  for (const { path, file } of files) {
    if (hidden(path)) {
      continue;
    }
    if (ZIP.test(file.name)) {
      await readProject(file, things, skipped);
    } else {
      place({ path, type: file.type, name: file.name, blob: async () => file }, labelOf(path), things, skipped);
    }
  }
  return { things: [...things.values()].filter((thing) => thing.pictures.length || thing.films.length), skipped };
}

async function readProject(file, things, skipped) {
  let entries;
  try {
    entries = (await readZip(file)).filter((entry) => !hidden(entry.name));
  } catch (error) {
    throw new BadZip(file.name, error);
  }
  const manifest = entries.find((entry) => /(^|\/)manifest\.json$/.test(entry.name));
  let names = null;
  try {
    names = manifest ? namesOf(JSON.parse(await (await manifest.blob()).text())) : null;
  } catch {
    // Folders name things, too.
  }
  for (const entry of entries) {
    if (entry !== manifest) {
      const label = names?.get(entry.name) ?? labelOf(entry.name, stem(file.name));
      place({ path: entry.name, type: '', name: entry.name, blob: entry.blob }, label, things, skipped);
    }
  }
}

function place(item, label, things, skipped) {
  const film = isFilm(item);
  if (!film && !PICTURE.test(item.name) && !item.type?.startsWith('image/')) {
    skipped.push(item.name);
    return;
  }
  if (!things.has(label)) {
    things.set(label, { label, pictures: [], films: [] });
  }
  things.get(label)[film ? 'films' : 'pictures'].push(item);
}

const hidden = (path) => /(^|\/)(\.|__MACOSX\/|Thumbs\.db$|desktop\.ini$)/.test(path);
const stem = (name) => name.replace(/\.\w+$/, '');

/** The folder that a file is in names the thing; without one, the file's own name may. */
function labelOf(path, otherwise = '') {
  const folders = path.split('/').slice(0, -1).filter((folder) => folder !== 'samples');
  if (folders.length) {
    return folders.at(-1);
  }
  // Samples of a project without folders: "Class 1-!-0.jpg".
  const file = path.split('/').at(-1);
  return file.includes('-!-') ? file.split('-!-')[0] : otherwise;
}

/** Return the class of each file that a project's manifest lists; null if it lists none. */
function namesOf(manifest) {
  const names = new Map();
  for (const entry of manifest.classes ?? manifest.data ?? []) {
    const label = entry.name ?? entry.className ?? entry.label;
    for (const sample of entry.samples ?? entry.files ?? entry.images ?? []) {
      const file = typeof sample === 'string' ? sample : sample?.file ?? sample?.name ?? sample?.path;
      if (file && label) {
        names.set(file, String(label));
      }
    }
  }
  return names.size ? names : null;
}
