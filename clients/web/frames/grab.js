// From a video, a picture or a bitmap to a frame. Only the centred square is drawn, unscaled, so
// that fitFrame alone decides how pixels are resized.

import { centreSquare, fitFrame } from './fit.js';

let canvas = null;

/** Return the frame of a drawable of width x height pixels. */
export function grabFrame(drawable, width, height, size) {
  const { left, top, side } = centreSquare(width, height);
  canvas ??= document.createElement('canvas');
  if (canvas.width !== side || canvas.height !== side) {
    canvas.width = side;
    canvas.height = side;
  }
  const context = canvas.getContext('2d', { willReadFrequently: true, alpha: true });
  context.imageSmoothingEnabled = false;
  // Transparency becomes white, as in lrtflite.read_image.
  context.fillStyle = '#fff';
  context.fillRect(0, 0, side, side);
  context.drawImage(drawable, left, top, side, side, 0, 0, side, side);
  return fitFrame(context.getImageData(0, 0, side, side), size);
}

/** Return the frame of a video's current picture; null before it has one. */
export function grabVideo(video, size) {
  const ready = video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA;
  return ready && video.videoWidth ? grabFrame(video, video.videoWidth, video.videoHeight, size) : null;
}

/** Return the frame of a picture file; throws for a file that is not a picture. */
export async function grabPicture(blob, size) {
  const options = { colorSpaceConversion: 'none', imageOrientation: 'from-image' };
  const bitmap = await createImageBitmap(blob, options);
  try {
    return grabFrame(bitmap, bitmap.width, bitmap.height, size);
  } finally {
    bitmap.close();
  }
}

/** Return a picture of a frame, for previews: a canvas of size x size pixels. */
export function drawFrame(frame, size, target = document.createElement('canvas')) {
  target.width = size;
  target.height = size;
  const pixels = new ImageData(size, size);
  for (let from = 0, to = 0; from < frame.length; from += 3, to += 4) {
    pixels.data[to] = frame[from];
    pixels.data[to + 1] = frame[from + 1];
    pixels.data[to + 2] = frame[from + 2];
    pixels.data[to + 3] = 255;
  }
  target.getContext('2d').putImageData(pixels, 0, 0);
  return target;
}
