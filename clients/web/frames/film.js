// Frames of a video file, evenly spread over its length.

import { grabVideo } from './grab.js';

// Most frames of one video; a lesson of the paper has 100.
export const MAX_FRAMES = 100;
const PATIENCE = 10000; // milliseconds for one step of a decoder

/** Return whether a file is named or typed as a video. */
export function isFilm(file) {
  return file.type.startsWith('video/') || /\.(mp4|m4v|mov|webm|mkv|ogv|avi|mjpe?g)$/i.test(file.name);
}

/** Yield the frames of a video file at `fps`, at most MAX_FRAMES; throws if it cannot be played. */
export async function* filmFrames(file, { size, fps, signal }) {
  const video = document.createElement('video');
  const address = URL.createObjectURL(file);
  video.muted = true;
  video.playsInline = true;
  video.preload = 'auto';
  try {
    video.src = address;
    await happened(video, 'loadeddata');
    const seconds = Number.isFinite(video.duration) ? video.duration : 0;
    const count = Math.max(1, Math.min(MAX_FRAMES, Math.floor(seconds * fps)));
    for (let number = 0; number < count; number += 1) {
      signal?.throwIfAborted();
      const moment = ((number + 0.5) * seconds) / count;
      if (seconds && Math.abs(video.currentTime - moment) > 1e-3) {
        video.currentTime = moment;
        await happened(video, 'seeked');
      }
      const frame = grabVideo(video, size);
      if (frame) {
        yield frame;
      }
    }
  } finally {
    video.removeAttribute('src');
    video.load();
    URL.revokeObjectURL(address);
  }
}

function happened(video, name) {
  return new Promise((resolve, reject) => {
    const settle = (finish) => (value) => {
      clearTimeout(timer);
      video.removeEventListener(name, done);
      video.removeEventListener('error', failed);
      finish(value);
    };
    const done = settle(resolve);
    const failed = settle(() => reject(new TypeError('not a video that this browser can play')));
    const timer = setTimeout(failed, PATIENCE);
    video.addEventListener(name, done);
    video.addEventListener('error', failed);
  });
}
