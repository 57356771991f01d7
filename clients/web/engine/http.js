// Requests to the server: the token's header, errors as EngineError, and knowing when it is gone.

import { EngineError, errorOf } from './errors.js';

const KEPT = 'lrtflite-token';

/** Take a token out of the address (#token=...), so that it is not shown or kept in the history. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, '', location.pathname + location.search);
  }
}

/** Sends requests; dispatches `offline` once the server does not answer, `online` once it does. */
export class Http extends EventTarget {
  constructor(base = new URL('api', document.baseURI)) {
    super();
    takeToken();
    this.base = base;
    this.offline = false;
    // A token that the server refused: asking with it again and again would lock this address out.
    this.refused = null;
  }

  get token() {
    return sessionStorage.getItem(KEPT) ?? '';
  }

  set token(text) {
    this.refused = null;
    sessionStorage.setItem(KEPT, text);
  }

  /** Return the Response of a request that succeeded. */
  async send(method, path = '', { body, type, signal, keepalive = false } = {}) {
    const headers = {};
    const { token } = this;
    if (token) {
      if (token === this.refused) {
        throw new EngineError('token', { status: 401 });
      }
      headers.Authorization = `Bearer ${token}`;
    }
    if (body !== undefined) {
      headers['Content-Type'] = type ?? 'application/json';
    }
    const options = { method, headers, body, signal, keepalive, cache: 'no-store', credentials: 'omit' };
    let response;
    try {
      response = await fetch(`${this.base}${path}`, options);
    } catch (error) {
      if (signal?.aborted) {
        throw error;
      }
      this.went(false);
      throw new EngineError('offline');
    }
    if (!response.ok) {
      const error = await errorOf(response);
      if (error.reason === 'token') {
        this.refused = token;
      }
      throw error;
    }
    return response;
  }

  async json(method, path, value, options = {}) {
    const body = value === undefined ? undefined : JSON.stringify(value);
    const response = await this.send(method, path, { ...options, body });
    return response.status === 204 ? null : this.read(response.json());
  }

  async bytes(method, path, body, options = {}) {
    const response = await this.send(method, path, { type: 'application/octet-stream', ...options, body });
    return this.read(response.json());
  }

  async blob(path, options) {
    return this.read((await this.send('GET', path, options)).blob());
  }

  /** A body that breaks off is a server that is gone, too. */
  async read(body) {
    try {
      return await body;
    } catch {
      this.went(false);
      throw new EngineError('offline');
    }
  }

  /** Note whether the server answers; ask again until it does. */
  went(online) {
    if (this.offline === !online) {
      return;
    }
    this.offline = !online;
    this.dispatchEvent(new Event(online ? 'online' : 'offline'));
    if (!online) {
      this.knock();
    }
  }

  async knock() {
    for (let pause = 300; this.offline; pause = Math.min(pause * 1.5, 3000)) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      try {
        const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
        const response = await fetch(this.base, { headers, cache: 'no-store' });
        if (response.status < 500) {
          this.went(true);
        }
      } catch {
        // Not yet.
      }
    }
  }

  /** Resolve once the server answers again. */
  back(signal) {
    if (!this.offline) {
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      this.addEventListener('online', () => resolve(), { once: true });
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }
}
