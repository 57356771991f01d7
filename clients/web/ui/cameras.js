// Which camera is shown, and what to say when there is none.

import { CameraTrouble, DeviceCamera, openBrowserCamera } from '../frames/camera.js';
import { text } from '../text/index.js';
import { notice } from './notices.js';

export class Cameras {
  constructor(state, stage, { addFiles }) {
    this.state = state;
    this.stage = stage;
    this.addFiles = addFiles;
    this.opening = 0;
    this.opened = null; // the choices with which the camera was opened
    state.addEventListener('choices', () => this.choicesChanged());
    state.engine.addEventListener('camera', ({ detail }) => this.deviceTold(detail));
  }

  get wants() {
    const { camera, facing } = this.state.choices;
    if (camera === 'device' || (camera === '' && this.state.engine.can.camera)) {
      return this.state.engine.can.camera ? { remote: true } : { facing };
    }
    if (camera.startsWith('id:')) {
      return { device: camera.slice(3) };
    }
    return { facing: camera.startsWith('facing:') ? camera.slice(7) : facing };
  }

  choicesChanged() {
    if (JSON.stringify(this.wants) !== this.opened) {
      this.open();
    } else if (this.state.camera) {
      this.stage.showCamera(this.state.camera, this.mirrored(this.state.camera));
    }
  }

  mirrored(camera) {
    return this.state.choices.mirror ?? camera.mirrored;
  }

  open() {
    const coming = this.openWanted().finally(() => {
      if (this.state.cameraComing === coming) {
        this.state.cameraComing = null;
      }
    });
    this.state.cameraComing = coming;
    return coming;
  }

  async openWanted() {
    this.opening += 1;
    const turn = this.opening;
    const wanted = this.wants;
    this.opened = JSON.stringify(wanted);
    this.state.camera?.stop();
    this.state.setCamera(null);
    this.stage.coverWith(wanted.remote ? [text.live.starting] : [text.live.starting, text.live.allow]);
    try {
      const camera = wanted.remote ? this.openDevice() : await openBrowserCamera(wanted);
      if (turn !== this.opening) {
        camera.stop();
        return;
      }
      this.use(camera);
    } catch (error) {
      if (turn === this.opening) {
        this.explain(error instanceof CameraTrouble ? error.reason : 'failed');
      }
    }
  }

  openDevice() {
    const { engine } = this.state;
    const camera = new DeviceCamera((after, signal) => engine.cameraFrame(after, signal));
    camera.addEventListener('trouble', ({ detail }) => {
      if (detail.reason === 'camera') {
        this.deviceTold({ state: 'lost', problem: detail.problem });
      }
    });
    camera.onFrame(() => {
      this.stage.uncover();
      this.stage.fitTo(camera.picture);
    });
    return camera;
  }

  use(camera) {
    camera.addEventListener('lost', () => {
      this.state.setCamera(null);
      this.state.tell('camera-lost');
      this.explain('lost');
    });
    this.stage.showCamera(camera, this.mirrored(camera));
    if (camera.remote) {
      this.stage.coverWith([text.live.starting]);
    }
    this.state.setCamera(camera);
  }

  explain(reason) {
    const device = this.state.engine.can.camera;
    if (reason === 'insecure' && device) {
      notice(`${text.camera.insecure} ${text.camera.insecureDevice}`, { id: 'camera' });
      this.state.choose({ camera: 'device' });
      return;
    }
    const actions = [];
    if (device) {
      actions.push({ label: text.camera.useDevice, run: () => this.state.choose({ camera: 'device' }) });
    }
    if (reason !== 'insecure') {
      actions.push({ label: text.common.retry, run: () => this.open() });
    }
    actions.push({ label: text.camera.addFiles, run: this.addFiles });
    this.stage.coverWith([text.camera[reason], text.camera[`${reason}Advice`]], actions, 'error');
  }

  deviceTold({ state: told, problem }) {
    if (!this.state.camera?.remote) {
      return;
    }
    if (told === 'lost') {
      const actions = window.isSecureContext
        ? [{ label: text.camera.useBrowser, run: () => this.state.choose({ camera: 'facing:environment' }) }]
        : [];
      actions.push({ label: text.camera.addFiles, run: this.addFiles });
      this.stage.coverWith([text.camera.deviceLost(problem)], actions, 'error');
    } else {
      this.stage.uncover();
    }
  }

  /** The other side of a phone, or the next camera. */
  switchSide() {
    const { camera, facing } = this.state.choices;
    const now = camera.startsWith('facing:') ? camera.slice(7) : facing;
    const other = now === 'user' ? 'environment' : 'user';
    this.state.choose({ camera: `facing:${other}`, facing: other });
  }
}
