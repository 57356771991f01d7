// Live answers: the newest picture goes to the engine, and a picture that comes too early is left
// out. Two requests may be under way, so that the network and the learner work at the same time.

const MOST_UNDER_WAY = 2;

/** Dispatches `answer` with what `predict` said, and counts answers a second. */
export class Predictor extends EventTarget {
  constructor(state, isBusy) {
    super();
    this.state = state;
    this.isBusy = isBusy;
    this.underWay = 0;
    this.waiting = false; // a picture came while all requests were under way
    this.sent = 0;
    this.shown = 0;
    this.times = [];
    state.addEventListener('camera', () => this.follow(state.camera));
    state.engine.addEventListener('answer', ({ detail }) => state.camera?.remote && this.tell(detail));
  }

  follow(camera) {
    if (camera && !camera.remote) {
      camera.onFrame(() => this.offer(camera));
    }
  }

  offer(camera) {
    if (this.underWay >= MOST_UNDER_WAY) {
      this.waiting = true;
      return;
    }
    this.waiting = false;
    this.ask(camera);
  }

  async ask(camera) {
    const { state } = this;
    if (camera !== state.camera || !state.online || document.hidden || this.isBusy()) {
      return;
    }
    const frame = camera.frame(state.size);
    if (!frame) {
      return;
    }
    this.sent += 1;
    this.underWay += 1;
    const number = this.sent;
    try {
      const answer = await state.engine.predict(frame);
      // An answer that was overtaken is old, and so is one from before the device was lost.
      if (number > this.shown && camera === state.camera && state.online) {
        this.shown = number;
        this.tell(answer);
      }
    } catch (error) {
      this.dispatchEvent(new CustomEvent('trouble', { detail: error }));
      await new Promise((resolve) => setTimeout(resolve, 500));
    } finally {
      this.underWay -= 1;
    }
    if (this.waiting) {
      this.offer(camera);
    }
  }

  tell(answer) {
    const now = performance.now();
    this.times.push(now);
    while (this.times[0] < now - 2000) {
      this.times.shift();
    }
    this.dispatchEvent(new CustomEvent('answer', { detail: answer }));
  }

  /** Answers a second, over the last two seconds. */
  get speed() {
    const [first] = this.times;
    const now = performance.now();
    if (now - this.times.at(-1) > 2000) {
      return 0;
    }
    const seconds = (now - first) / 1000;
    return this.times.length > 2 && seconds > 0.2 ? (this.times.length - 1) / seconds : 0;
  }
}
