// What the page knows and all its parts share: the engine, the classes, the camera, the choices.

import { BACKGROUND } from '../engine/index.js';
import { text } from '../text/index.js';

const KEPT = 'lrtflite-choices';
const DEFAULTS = { seconds: null, fps: null, camera: '', facing: 'environment', mirror: null };

/**
 * Dispatches `classes`, `camera`, `online` and `choices` when those change, and `camera-lost` for a
 * camera of the browser that is gone.
 */
export class PageState extends EventTarget {
  constructor(engine) {
    super();
    this.engine = engine;
    this.classes = { sessions: 0, slots: 0, free: 0, can_undo: false, last_change: null, classes: [] };
    this.camera = null;
    this.cameraComing = null; // a promise while a camera is being opened
    this.online = true;
    this.choices = { ...DEFAULTS, ...readKept() };
  }

  get size() {
    return this.engine.frameSize;
  }

  get seconds() {
    return this.choices.seconds ?? this.engine.about.teach.seconds;
  }

  get fps() {
    return this.choices.fps ?? this.engine.about.teach.fps;
  }

  /** Most frames of one lesson. */
  get maxFrames() {
    return this.engine.about.teach.max_frames;
  }

  get learned() {
    return this.classes.classes.filter((entry) => entry.learned || entry.pictures > 0 || entry.label);
  }

  /** What is learned, without the background. */
  get things() {
    return this.learned.filter((entry) => !entry.background);
  }

  /** The background, or undefined if it was not taught. */
  get background() {
    return this.classes.classes.find((entry) => entry.background);
  }

  /** Return what a label is called in a sentence. */
  called(label) {
    return label === BACKGROUND ? text.background.called : label;
  }

  /** Return the name of a class for a button. */
  nameOf(entry) {
    return entry.background ? text.background.name : entry.label;
  }

  entry(slot) {
    return this.classes.classes.find((entry) => entry.slot === slot);
  }

  labelled(label) {
    return this.classes.classes.find((entry) => entry.label === label);
  }

  setClasses(classes) {
    this.classes = classes;
    this.tell('classes');
  }

  setCamera(camera) {
    this.camera = camera;
    this.tell('camera');
  }

  setOnline(online) {
    this.online = online;
    this.tell('online');
  }

  choose(change) {
    Object.assign(this.choices, change);
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.choices));
    } catch {
      // A browser that keeps nothing still works.
    }
    this.tell('choices');
  }

  /** Return a name that no class has yet. */
  freshName(suggested) {
    let n = this.things.length + 1;
    while (this.labelled(suggested(n))) {
      n += 1;
    }
    return suggested(n);
  }

  tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

function readKept() {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}
