// The user's side: runs of the cloved on this machine.

import { randomBytes } from "node:crypto";
import { basename, join } from "node:path";

import { STANDARD, USER_METHODS } from "./api.js";
import { Connection, LostError, TimeoutError, errorOf, line } from "./connection.js";
import { CloveError, UnansweredError, UnreachableError } from "./errors.js";
import { answerOf, bind } from "./methods.js";
import { unreachable } from "./retry.js";

const PIECE = 32 << 10; // bytes of input on one line, which has at most 64 KiB

// Where cloved listens, by the variables that the command clove reads, too.
function daemonPath() {
  return process.env.CLOVE_SOCKET || join(process.env.CLOVE_RUN_DIR || "/run/clove", "clove.sock");
}

export class Stream {
  #path;
  #method;
  #params;
  #row;
  #options;
  #opening;
  #connection;
  #ended = false;
  result;

  constructor(path, method, params, row, options = {}) {
    this.#path = path;
    this.#method = method;
    this.#params = params ?? {};
    this.#row = row;
    this.#options = options;
  }

  open() {
    this.#opening ??= this.#connect();
    return this.#opening;
  }

  async #connect() {
    this.#options.signal?.throwIfAborted();
    try {
      this.#connection = await Connection.open(this.#path);
    } catch (problem) {
      throw unreachable(this.#path, problem, "start cloved, and be root or a member of its group");
    }
    if (this.#ended) this.#connection.close();
    this.#connection.send(line(this.#method, this.#params, 1)).catch(() => {}); // next reports it
    return this.#connection;
  }

  async next() {
    if (this.#ended) return { value: undefined, done: true };
    try {
      for (;;) {
        const message = await this.#receive();
        if (message.method === undefined) return this.#answer(message);
        const note = this.noteOf(message);
        if (note !== undefined) return { value: note, done: false };
      }
    } catch (problem) {
      this.close();
      if (problem instanceof CloveError) Object.assign(problem, { method: this.#method, key: this.#params.key });
      throw problem;
    }
  }

  async #receive() {
    const connection = await this.open();
    const { timeout, signal } = this.#options;
    try {
      return await connection.receive({ timeout, signal });
    } catch (problem) {
      if (problem instanceof TimeoutError) throw new UnansweredError(`nothing came within ${timeout} ms`, { word: "unanswered" });
      if (problem instanceof LostError) throw new UnreachableError("the connection to cloved was lost", { word: "unreachable", cause: problem });
      throw problem;
    }
  }

  #answer({ result, error }) {
    this.close();
    if (error) throw errorOf(error);
    this.result = answerOf(this.#row, result);
    return { value: undefined, done: true };
  }

  // The notification in a message; undefined: it is none of those that the iteration gives.
  noteOf({ params = {} }) {
    return params;
  }

  async return() {
    this.close();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async end() {
    while (!(await this.next()).done);
    return this.result;
  }

  close() {
    this.#ended = true;
    this.#connection?.close();
  }
}

export class Session extends Stream {
  noteOf({ method, params = {} }) {
    return method === "session.output" ? { ...params, data: Buffer.from(params.data ?? "", "base64") } : undefined;
  }

  async send(data) {
    const bytes = Buffer.from(data);
    for (let at = 0; at < bytes.length; at += PIECE) {
      await this.#notify("session.input", { data: bytes.subarray(at, at + PIECE).toString("base64") });
    }
  }

  closeInput() {
    return this.#notify("session.close_input", {});
  }

  resize(rows, columns) {
    return this.#notify("session.resize", { rows, columns });
  }

  detach() {
    return this.#notify("session.detach", {});
  }

  // Sends all of an input, and its end. A source that fails ends the session: half of an input must
  // not look like a whole one.
  async feed(source) {
    try {
      for await (const piece of typeof source === "string" || source instanceof Uint8Array ? [source] : source) await this.send(piece);
      await this.closeInput();
    } catch (problem) {
      if (problem instanceof LostError) return; // the process reads no more; the answer says how it ended
      this.close();
      throw problem;
    }
  }

  async #notify(method, params) {
    await (await this.open()).send(line(method, params));
  }
}

const SHAPES = { stream: Stream, session: Session };

export class Cloved {
  constructor({ path = daemonPath() } = {}) {
    this.path = path;
    bind(this, USER_METHODS, "", (name, row) => (params, options) => {
      const call = new (SHAPES[row.shape] ?? Stream)(path, name, params, row, options);
      return row.shape === "call" ? call.end() : call;
    });
  }

  start({ command, name = `${basename(command[0])}-${randomBytes(4).toString("hex")}`, spec = STANDARD, ...changes }, options) {
    return this.run.start({ spec: { ...spec, command, name, ...changes } }, options);
  }

  async exec(run, command, { input, env = {}, dir, user, limit = 10 << 20, ...options } = {}) {
    const exec = { command, env: Object.entries(env).map(([key, value]) => `${key}=${value}`), dir, user };
    const session = this.run.exec({ run, exec, stdin: input !== undefined }, options);
    const streams = { stdout: [], stderr: [] };
    const sizes = { stdout: 0, stderr: 0 };
    const { exit_code, failure } = await converse(session, input, ({ stream, data }) => {
      if (!stream) return;
      sizes[stream] += data.length;
      if (sizes[stream] > limit) throw new RangeError(`${stream} has more than ${limit} bytes`);
      streams[stream].push(data);
    });
    return { exitCode: exit_code, failure, stdout: Buffer.concat(streams.stdout), stderr: Buffer.concat(streams.stderr) };
  }

  async copyIn(run, folder, archive, options) {
    await converse(this.run.copyIn({ run, path: folder }, options), archive, () => {});
  }

  async *copyOut(run, path, options) {
    for await (const { data } of this.run.copyOut({ run, path }, options)) yield data;
  }

  async *logs(run, choice = {}, options) {
    for await (const note of this.run.logs({ ...choice, run, many: true }, options)) yield* note.lines ?? [];
  }
}

// Holds a session to its end, with its input, and returns its answer.
async function converse(session, input, each) {
  let broken;
  // It is not waited for: a source may say nothing more when the session has ended.
  if (input !== undefined) session.feed(input).catch((problem) => (broken = problem));
  try {
    for await (const output of session) each(output);
  } catch (problem) {
    throw broken ?? problem;
  }
  return session.result;
}
