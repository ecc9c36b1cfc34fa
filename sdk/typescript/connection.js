// Connections to a Unix socket: one JSON-RPC 2.0 object a line.

import { createConnection } from "node:net";

import { ERRORS } from "./api.js";
import { CloveError } from "./errors.js";

// A connection failed. The call that was on it may have been done or not.
export class LostError extends Error {}

// No message came in time.
export class TimeoutError extends Error {}

// The line of a message. A connection has one call at a time, so each has the same id.
export function line(method, params, id) {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
}

// The error of an error object.
export function errorOf({ code, message, data }) {
  const known = data !== null && typeof data === "object" ? data : {};
  const kind = ERRORS[known.word] ?? CloveError;
  return new kind(message, { code, word: known.word, hint: known.hint, step: known.step, rule: known.rule });
}

export class Connection {
  #socket;
  #lines;

  constructor(socket) {
    this.#socket = socket;
    this.#lines = linesOf(socket);
    socket.on("error", () => {}); // who reads or writes gets it
    this.usable = true; // the next answer is that of the next call
  }

  static open(path) {
    return new Promise((resolve, reject) => {
      const socket = createConnection(path);
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        socket.unref(); // only who waits for a message keeps the program from ending
        resolve(new Connection(socket));
      });
    });
  }

  // Sends a call and returns its answer's result.
  async ask(text, limits) {
    this.usable = false;
    this.#socket.write(text);
    const answer = await this.receive(limits);
    // An error without an id is about the connection, which has ended.
    this.usable = answer.id !== undefined && answer.id !== null;
    if (answer.error) throw errorOf(answer.error);
    return answer.result;
  }

  // Writes a line, and waits until the other side has room for more.
  send(text) {
    return new Promise((resolve, reject) => {
      this.#socket.write(text, (problem) => (problem ? reject(new LostError(problem.message, { cause: problem })) : resolve()));
    });
  }

  // The next message. The connection ends when the time is over or the signal aborts.
  async receive({ timeout, signal } = {}) {
    let reason;
    const stop = (why) => {
      reason = why;
      this.close();
    };
    const abort = () => stop(signal.reason);
    if (signal?.aborted) abort();
    const timer = timeout === undefined ? undefined : setTimeout(() => stop(new TimeoutError()), timeout);
    signal?.addEventListener("abort", abort);
    this.#socket.ref();
    try {
      const { value, done } = await this.#lines.next();
      if (done) throw new LostError("the connection has ended");
      return JSON.parse(value);
    } catch (problem) {
      if (reason !== undefined) throw reason;
      if (problem instanceof LostError || problem instanceof SyntaxError) throw problem;
      throw new LostError(problem.message, { cause: problem });
    } finally {
      this.#socket.unref();
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  close() {
    this.usable = false;
    this.#socket.destroy();
  }
}

// The lines that come. It reads no more than is asked for, so a slow reader slows the writer down.
async function* linesOf(socket) {
  let rest = Buffer.alloc(0);
  for await (const chunk of socket) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      yield Buffer.concat([rest, chunk.subarray(from, end)]).toString();
      rest = Buffer.alloc(0);
      from = end + 1;
    }
    rest = Buffer.concat([rest, chunk.subarray(from)]);
  }
}
