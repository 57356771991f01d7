// One kind of error reaches the page: EngineError, with the sentence of the engine.

/**
 * Reasons that the page treats in a way of its own; others are shown as they are.
 * offline: no answer at all. token: missing or wrong. lost: the lesson is gone. busy: something
 * else is being taught, or the state is in use. full: the disk. absent: this engine cannot do it.
 */
export class EngineError extends Error {
  constructor(reason, { problem = '', advice = null, status = 0, kind = '' } = {}) {
    super(problem || reason);
    this.name = 'EngineError';
    this.reason = reason;
    this.problem = problem;
    this.advice = advice;
    this.status = status;
    this.kind = kind;
  }
}

const REASONS = { 401: 'token', 404: 'missing', 409: 'busy', 413: 'large', 429: 'crowded', 501: 'absent', 503: 'camera', 507: 'full' };

/** Return the error of an HTTP response that is not OK. */
export async function errorOf(response) {
  let told = {};
  try {
    told = (await response.json()).error ?? {};
  } catch {
    // Something between the page and the server answered.
  }
  return new EngineError(REASONS[response.status] ?? 'refused', { ...told, status: response.status });
}
