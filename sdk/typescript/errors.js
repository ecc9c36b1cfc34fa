// What every error of this package is.

export class CloveError extends Error {
  constructor(message, { code = 0, word = "", hint = "", step = "", rule = "", cause } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    Object.assign(this, { code, word, hint, step, rule });
  }
}

export class UnreachableError extends CloveError {}

export class UnansweredError extends CloveError {}
