// A lesson on the server: frames go out in order, numbered, and again after a lost connection.

import { EngineError } from './errors.js';

// Frames that may wait for the server before `collect` is refused; RAM is the page's own.
const MAX_WAITING = 600;

export class ServerLesson {
  constructor(http, opened) {
    this.http = http;
    this.id = opened.id;
    this.label = opened.label;
    this.slot = opened.slot;
    this.waiting = [];
    this.sent = 0;
    this.stopping = new AbortController();
    this.failure = null;
    this.turn = Promise.resolve();
    this.status = { frames: 0, extracted: 0, hints: [], enough: false };
  }

  get path() {
    return `/lessons/${encodeURIComponent(this.id)}`;
  }

  /** Queue a frame; resolves to the lesson's status once the server has it. */
  collect(frame) {
    if (this.waiting.length >= MAX_WAITING) {
      return Promise.reject(new EngineError('offline'));
    }
    this.waiting.push(frame);
    this.turn = this.turn.then(() => this.deliver());
    return this.turn;
  }

  async deliver() {
    while (this.waiting.length && !this.failure && !this.stopping.signal.aborted) {
      try {
        await this.deliverOne();
      } catch (error) {
        this.failure = error;
      }
    }
    if (this.failure) {
      throw this.failure;
    }
    return this.status;
  }

  async deliverOne() {
    const { signal } = this.stopping;
    try {
      const path = `${this.path}/frames?number=${this.sent}`;
      this.status = await this.http.bytes('POST', path, this.waiting[0], { signal });
      this.waiting.shift();
      this.sent += 1;
    } catch (error) {
      if (error.reason !== 'offline') {
        throw error.reason === 'missing' ? new EngineError('lost') : error;
      }
      await this.resume(signal);
    }
  }

  /** Wait for the server, then go on after the last frame that it has. */
  async resume(signal) {
    await this.http.back(signal);
    let status;
    try {
      status = await this.http.json('GET', this.path, undefined, { signal });
    } catch (error) {
      if (error.reason === 'offline') {
        return;
      }
      throw error.reason === 'missing' ? new EngineError('lost') : error;
    }
    // The server may have the first waiting frame, its answer lost on the way.
    const arrived = status.frames - this.sent;
    if (arrived < 0 || arrived > this.waiting.length) {
      throw new EngineError('lost');
    }
    this.waiting.splice(0, arrived);
    this.sent = status.frames;
    this.status = status;
  }

  /** Learn; asks again after a lost connection, which the server answers in the same way. */
  async commit() {
    await this.turn;
    for (;;) {
      try {
        return await this.http.json('POST', `${this.path}/commit`);
      } catch (error) {
        if (error.reason !== 'offline') {
          throw error.reason === 'missing' ? new EngineError('lost') : error;
        }
        await this.http.back();
      }
    }
  }

  async cancel() {
    this.stopping.abort();
    try {
      // The page may be closing.
      await this.http.json('DELETE', this.path, undefined, { keepalive: true });
    } catch (error) {
      if (error.reason !== 'missing' && error.reason !== 'offline') {
        throw error;
      }
    }
  }
}
