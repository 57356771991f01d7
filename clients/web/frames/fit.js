// The exact fitFrame: crop the centred square and resize it, byte for byte as lrtflite.fit_frame
// does. Every sum is a whole number below 2 ** 53, so doubles hold it exactly.

const WEIGHTS = new Map();

/** Return the square that fitFrame crops: {left, top, side}. */
export function centreSquare(width, height) {
  const side = Math.min(width, height);
  return { left: Math.floor((width - side) / 2), top: Math.floor((height - side) / 2), side };
}

/** Turn RGBA pixels (an ImageData) into size * size * 3 bytes RGB. */
export function fitFrame(image, size) {
  const { width, height, data } = image;
  if (!(width > 0 && height > 0 && size > 0)) {
    throw new RangeError(`Expected a picture with pixels, got ${width} x ${height}`);
  }
  const { left, top, side } = centreSquare(width, height);
  const frame = new Uint8Array(size * size * 3);
  if (side === size) {
    copySquare(frame, data, width, left, top, side);
    return frame;
  }
  const { spans, total } = axisWeights(side, size);
  const area = total * total;
  const row = new Float64Array(side * 3);
  for (let y = 0; y < size; y += 1) {
    sumRows(row, data, width, left, top, side, spans[y]);
    for (let x = 0; x < size; x += 1) {
      const { start, weights } = spans[x];
      let red = 0;
      let green = 0;
      let blue = 0;
      for (let i = 0, at = start * 3; i < weights.length; i += 1, at += 3) {
        const weight = weights[i];
        red += weight * row[at];
        green += weight * row[at + 1];
        blue += weight * row[at + 2];
      }
      const to = (y * size + x) * 3;
      frame[to] = Math.floor((2 * red + area) / (2 * area));
      frame[to + 1] = Math.floor((2 * green + area) / (2 * area));
      frame[to + 2] = Math.floor((2 * blue + area) / (2 * area));
    }
  }
  return frame;
}

function copySquare(frame, data, width, left, top, side) {
  let to = 0;
  for (let y = 0; y < side; y += 1) {
    let from = ((top + y) * width + left) * 4;
    for (let x = 0; x < side; x += 1, from += 4, to += 3) {
      frame[to] = data[from];
      frame[to + 1] = data[from + 1];
      frame[to + 2] = data[from + 2];
    }
  }
}

/** Fill `row` (side * 3) with the weighted sum of the picture's rows in a span. */
function sumRows(row, data, width, left, top, side, { start, weights }) {
  row.fill(0);
  for (let i = 0; i < weights.length; i += 1) {
    const weight = weights[i];
    let from = ((top + start + i) * width + left) * 4;
    for (let to = 0; to < side * 3; to += 3, from += 4) {
      row[to] += weight * data[from];
      row[to + 1] += weight * data[from + 1];
      row[to + 2] += weight * data[from + 2];
    }
  }
}

/** Return the whole weights of each output of an axis, and their sum. */
function axisWeights(side, size) {
  const key = `${side}:${size}`;
  if (!WEIGHTS.has(key)) {
    if (WEIGHTS.size >= 16) {
      WEIGHTS.clear();
    }
    WEIGHTS.set(key, side > size ? shrinking(side, size) : enlarging(side, size));
  }
  return WEIGHTS.get(key);
}

/** Return the average over the area: overlaps of [o * side, ...) with [i * size, ...). */
function shrinking(side, size) {
  const spans = [];
  for (let output = 0; output < size; output += 1) {
    const begin = output * side;
    const end = begin + side;
    const start = Math.floor(begin / size);
    const stop = Math.ceil(end / size);
    const weights = new Float64Array(stop - start);
    for (let i = start; i < stop; i += 1) {
      weights[i - start] = Math.min(end, (i + 1) * size) - Math.max(begin, i * size);
    }
    spans.push({ start, weights });
  }
  return { spans, total: side };
}

/** Return linear weights between pixel centres; the nearest pixel stands for one outside. */
function enlarging(side, size) {
  const spans = [];
  const total = 2 * size;
  for (let output = 0; output < size; output += 1) {
    const t = (2 * output + 1) * side - size;
    const low = Math.floor(t / total);
    const part = t - low * total;
    const first = Math.min(Math.max(low, 0), side - 1);
    const second = Math.min(Math.max(low + 1, 0), side - 1);
    const weights = first === second ? [total] : [total - part, part];
    spans.push({ start: first, weights: Float64Array.from(weights) });
  }
  return { spans, total };
}
