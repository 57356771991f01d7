// Small pictures from the engine. They are fetched with the token and shown as blobs.

const addresses = new Map();
const MOST = 400;

/** Fill an <img> with the picture under `key`, fetching it once. */
export async function fillThumb(image, key, fetchBlob) {
  if (image.dataset.key === key) {
    return;
  }
  image.dataset.key = key;
  if (!addresses.has(key)) {
    if (addresses.size >= MOST) {
      const [oldest] = addresses.keys();
      addresses.get(oldest).then(URL.revokeObjectURL, () => {});
      addresses.delete(oldest);
    }
    addresses.set(key, fetchBlob().then((blob) => URL.createObjectURL(blob)));
  }
  try {
    const address = await addresses.get(key);
    if (image.dataset.key === key) {
      image.src = address;
      image.hidden = false;
    }
  } catch {
    addresses.delete(key);
    delete image.dataset.key;
    image.hidden = true;
  }
}

/** Show no picture. */
export function clearThumb(image) {
  delete image.dataset.key;
  image.removeAttribute('src');
  image.hidden = true;
}

/** Fill an <img> with the thumbnail of a class, as {slot, thumbnail}. */
export function classThumb(image, engine, entry) {
  if (entry?.thumbnail === null || entry?.thumbnail === undefined) {
    clearThumb(image);
    return;
  }
  fillThumb(image, `class-${entry.slot}-${entry.thumbnail}`, () => engine.thumbnail(entry.slot));
}
