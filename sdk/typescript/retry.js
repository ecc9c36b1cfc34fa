// When a call is made again, and what is thrown when it is not.

import { UnreachableError } from "./errors.js";

const FIRST_DELAY = 10;
const LONGEST_DELAY = 1000;

// The times between the attempts at one thing, and their end after so many milliseconds.
export class Backoff {
  #deadline;
  #delay = 0; // at once: an idle connection may have been closed meanwhile

  constructor(patience) {
    this.#deadline = performance.now() + patience;
  }

  // How long to wait before the next attempt; undefined: there is none.
  next() {
    const delay = this.#delay * (0.5 + Math.random() / 2); // not all callers at the same moment
    this.#delay = Math.min(Math.max(this.#delay * 2, FIRST_DELAY), LONGEST_DELAY);
    return performance.now() + delay <= this.#deadline ? delay : undefined;
  }
}

export function unreachable(path, cause, hint = "start the run with --grant, --budget or --agent-socket") {
  return new UnreachableError(`cannot reach ${path}: ${cause.message}`, { word: "unreachable", hint, cause });
}
