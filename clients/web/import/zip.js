// Zip files, read without a library: the central directory, then stored or deflated entries.

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
const END_SIZE = 22;
const MAX_COMMENT = 0xffff;
// Limits on what a file may unpack to, so that a hostile one cannot fill the memory.
const MAX_ENTRIES = 20000;
const MAX_BYTES = 64 * 1024 * 1024; // one entry

/** Return the entries of a zip as {name, size, blob()}; throws for a file that is not a zip. */
export async function readZip(file) {
  const directory = await findDirectory(file);
  const view = new DataView(await file.slice(directory.start, directory.start + directory.size).arrayBuffer());
  const entries = [];
  let at = 0;
  for (let n = 0; n < directory.count; n += 1) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== ENTRY) {
      throw new TypeError('damaged zip');
    }
    const entry = readEntry(view, at);
    at += entry.length;
    if (!entry.name.endsWith('/')) {
      entries.push({ name: entry.name, size: entry.size, blob: () => unpack(file, entry) });
    }
  }
  return entries;
}

async function findDirectory(file) {
  const start = Math.max(0, file.size - END_SIZE - MAX_COMMENT);
  const view = new DataView(await file.slice(start).arrayBuffer());
  for (let at = view.byteLength - END_SIZE; at >= 0; at -= 1) {
    if (view.getUint32(at, true) === END) {
      const count = view.getUint16(at + 10, true);
      const size = view.getUint32(at + 12, true);
      const offset = view.getUint32(at + 16, true);
      if (count <= MAX_ENTRIES && offset + size <= start + at) {
        return { count, size, start: offset };
      }
    }
  }
  throw new TypeError('not a zip file');
}

function readEntry(view, at) {
  const nameLength = view.getUint16(at + 28, true);
  const length = 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  const name = new Uint8Array(view.buffer, view.byteOffset + at + 46, nameLength);
  return {
    length,
    name: new TextDecoder().decode(name),
    method: view.getUint16(at + 10, true),
    packed: view.getUint32(at + 20, true),
    size: view.getUint32(at + 24, true),
    offset: view.getUint32(at + 42, true),
  };
}

async function unpack(file, { offset, packed, size, method }) {
  if (size > MAX_BYTES) {
    throw new TypeError('too large');
  }
  const header = new DataView(await file.slice(offset, offset + 30).arrayBuffer());
  if (header.byteLength < 30 || header.getUint32(0, true) !== LOCAL) {
    throw new TypeError('damaged zip');
  }
  const start = offset + 30 + header.getUint16(26, true) + header.getUint16(28, true);
  const body = file.slice(start, start + packed);
  if (method === 0) {
    return body;
  }
  if (method !== 8) {
    throw new TypeError('packed in an unknown way');
  }
  return inflate(body, size);
}

/** Unpack at most `size` bytes: the directory may say less than there is. */
async function inflate(body, size) {
  const reader = body.stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  const parts = [];
  let bytes = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) {
      return new Blob(parts);
    }
    bytes += value.length;
    if (bytes > size) {
      await reader.cancel();
      throw new TypeError('damaged zip');
    }
    parts.push(value);
  }
}
