// The choice of an engine. Today there is one: the server that this page comes from. A second one,
// a learner in a worker, would be chosen here where no server answers.

import { ServerEngine } from './server.js';

export { EngineError } from './errors.js';

// Label of the background: a lesson with this label teaches a place without a thing.
export const BACKGROUND = 'nothing here';

/** Return an engine; `open` it before anything else, which may ask for a token. */
export function createEngine() {
  return new ServerEngine();
}
