// Dropped or chosen files as things to learn: {label, pictures: [item], films: [item]}, where an
// item is {name, blob()}. Folders name things; loose files are one thing without a name.

import { isFilm } from '../frames/film.js';
import { readZip } from './zip.js';

const PICTURE = /\.(jpe?g|png|webp|bmp|gif|avif)$/i;
const ZIP = /\.(tm|zip)$/i;
// A project of Teachable Machine: this file, and pictures named class, mark, number.
const MANIFEST = 'manifest.json';
const MARK = '-!-';

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
export async function readSources(files, signal) {
  const things = new Map();
  const skipped = [];
  for (const { path, file } of files) {
    signal?.throwIfAborted();
    if (hidden(path)) {
      continue;
    }
    if (ZIP.test(file.name)) {
      await readProject(file, things, skipped);
    } else {
      place({ type: file.type, name: file.name, blob: async () => file }, labelOf(path), things, skipped);
    }
  }
  return { things: [...things.values()].filter((thing) => thing.pictures.length || thing.films.length), skipped };
}

/** Read a project of Teachable Machine, or a zip with a folder for each thing. */
async function readProject(file, things, skipped) {
  let entries;
  try {
    entries = (await readZip(file)).filter((entry) => !hidden(entry.name));
    await checkKind(entries.find((entry) => entry.name === MANIFEST));
  } catch (error) {
    throw new BadZip(file.name, error);
  }
  for (const { name, blob } of entries) {
    if (name !== MANIFEST) {
      place({ name, type: '', blob }, labelOf(name, stem(file.name)), things, skipped);
    }
  }
}

/** Throw for a project of sounds or poses, which has no pictures. */
async function checkKind(manifest) {
  if (manifest) {
    const { type = 'image' } = JSON.parse(await (await manifest.blob()).text());
    if (type !== 'image') {
      throw new TypeError(`a project of ${type}`);
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

/** A sample of a project is named "mug-!-0.jpg"; else the folder that a file is in names the thing. */
function labelOf(path, otherwise = '') {
  const mark = path.lastIndexOf(MARK);
  if (mark > 0) {
    return path.slice(0, mark);
  }
  return path.split('/').slice(0, -1).at(-1) ?? otherwise;
}
