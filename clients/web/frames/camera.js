// Cameras, each with the same few members: `picture` (the element to show), `frame(size)`,
// `onFrame(call)` for each new picture, `stop()`, and the event `lost`.

import { grabVideo } from './grab.js';

/** Thrown with `reason`: insecure, refused, missing, busy or failed. */
export class CameraTrouble extends Error {
  constructor(reason, cause) {
    super(reason, { cause });
    this.reason = reason;
  }
}

const REASONS = {
  NotAllowedError: 'refused',
  SecurityError: 'refused',
  NotFoundError: 'missing',
  OverconstrainedError: 'missing',
  NotReadableError: 'busy',
  AbortError: 'busy',
};

/** Open a camera of the browser; `facing` is 'user' or 'environment', `device` an id. */
export async function openBrowserCamera({ facing = 'environment', device = '' } = {}) {
  if (!window.isSecureContext || !navigator.mediaDevices?.getUserMedia) {
    throw new CameraTrouble('insecure');
  }
  const video = { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 } };
  const wanted = device ? { deviceId: { exact: device } } : { facingMode: { ideal: facing } };
  try {
    const stream = await openStream({ ...video, ...wanted }, { ...video, facingMode: { ideal: facing } });
    return await BrowserCamera.of(stream);
  } catch (error) {
    throw new CameraTrouble(REASONS[error.name] ?? 'failed', error);
  }
}

async function openStream(video, fallback) {
  try {
    return await navigator.mediaDevices.getUserMedia({ video, audio: false });
  } catch (error) {
    // A remembered camera may be gone; another one is better than none.
    if (error.name !== 'OverconstrainedError') {
      throw error;
    }
    return navigator.mediaDevices.getUserMedia({ video: fallback, audio: false });
  }
}

/** Return the browser's cameras as {id, label}; labels are empty before permission is given. */
export async function listCameras() {
  const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
  return devices
    .filter((device) => device.kind === 'videoinput' && device.deviceId)
    .map((device) => ({ id: device.deviceId, label: device.label }));
}

class BrowserCamera extends EventTarget {
  static async of(stream) {
    const video = document.createElement('video');
    video.muted = true;
    video.playsInline = true;
    video.srcObject = stream;
    try {
      await video.play();
    } catch (error) {
      stream.getTracks().forEach((track) => track.stop());
      throw error;
    }
    return new BrowserCamera(stream, video);
  }

  constructor(stream, video) {
    super();
    this.picture = video;
    this.stream = stream;
    this.running = true;
    const [track] = stream.getVideoTracks();
    this.mirrored = track.getSettings().facingMode === 'user';
    track.addEventListener('ended', () => {
      if (this.running) {
        this.stop();
        this.dispatchEvent(new Event('lost'));
      }
    });
  }

  get ready() {
    return this.running && this.picture.videoWidth > 0;
  }

  frame(size) {
    return this.running ? grabVideo(this.picture, size) : null;
  }

  onFrame(call) {
    const video = this.picture;
    const next = (then) =>
      video.requestVideoFrameCallback ? video.requestVideoFrameCallback(then) : setTimeout(then, 33);
    const each = () => {
      if (this.running) {
        call();
        next(each);
      }
    };
    next(each);
  }

  stop() {
    this.running = false;
    this.stream.getTracks().forEach((track) => track.stop());
    this.picture.srcObject = null;
  }
}

/** The camera of the device that serves the page; the device itself predicts and teaches. */
export class DeviceCamera extends EventTarget {
  /** `fetchFrame(after, signal)` resolves to {number, blob}, or null if none came. */
  constructor(fetchFrame) {
    super();
    this.fetchFrame = fetchFrame;
    this.picture = document.createElement('canvas');
    this.mirrored = false;
    this.ready = false;
    this.running = true;
    this.remote = true;
    this.calls = [];
    this.stopping = new AbortController();
    this.run();
  }

  async run() {
    let number = -1;
    while (this.running) {
      try {
        const frame = await this.fetchFrame(number, this.stopping.signal);
        if (frame) {
          number = frame.number;
          await this.show(frame.blob);
        }
      } catch (error) {
        if (this.running) {
          this.dispatchEvent(new CustomEvent('trouble', { detail: error }));
          await new Promise((resolve) => setTimeout(resolve, 2000));
        }
      }
    }
  }

  async show(blob) {
    const bitmap = await createImageBitmap(blob);
    this.picture.width = bitmap.width;
    this.picture.height = bitmap.height;
    this.picture.getContext('2d').drawImage(bitmap, 0, 0);
    bitmap.close();
    this.ready = true;
    this.calls.forEach((call) => call());
  }

  frame() {
    return null;
  }

  onFrame(call) {
    this.calls.push(call);
  }

  stop() {
    this.running = false;
    this.stopping.abort();
  }
}
