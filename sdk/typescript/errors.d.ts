/** A call that was not done. There is one subclass for each error word. */
export class CloveError extends Error {
  constructor(message: string, data?: { code?: number; word?: string; hint?: string; step?: string; rule?: string; cause?: unknown });
  /** The JSON-RPC code. */
  readonly code: number;
  /** The code's stable word: messages may change. */
  readonly word: string;
  /** What to do about it. */
  readonly hint: string;
  /** Which step or parameter it was. */
  readonly step: string;
  /** What decided, such as a grant's id. */
  readonly rule: string;
  /** The method that was called. */
  readonly method?: string;
  /** The call's key. The same call with the same key is never done twice. */
  readonly key?: string;
}

/** There is no socket, or connections to it keep failing. */
export class UnreachableError extends CloveError {}

/** No answer came in time. The call may have been done; repeat it with its key. */
export class UnansweredError extends CloveError {}
