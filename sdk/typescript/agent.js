// The agent's side of its socket.

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { AGENT_METHODS, BusyError, DrainingError, MAX_LINE, TooLargeError } from "./api.js";
import { Connection, LostError, TimeoutError, errorOf, line } from "./connection.js";
import { CloveError, UnansweredError } from "./errors.js";
import { answerOf, bind } from "./methods.js";
import { Backoff, unreachable } from "./retry.js";

// The bytes of one call's part of a blob.
const PART = 36 << 10;

// Where clove put the agent's socket.
function socketPath() {
  return process.env.CLOVE_AGENT_SOCKET || "/run/clove/agent.sock";
}

// A connection to path. UnreachableError: there is no socket.
async function open(path) {
  try {
    return await Connection.open(path);
  } catch (problem) {
    if (problem.code === "ENOENT" || problem.code === "EACCES") throw unreachable(path, problem);
    throw new LostError(problem.message, { cause: problem });
  }
}

export class Agent {
  #patience;
  #timeout;
  #pool;
  #listening = new Set();

  constructor({ path = socketPath(), patience = 15_000, timeout, connections = 8 } = {}) {
    this.path = path;
    this.#patience = patience;
    this.#timeout = timeout;
    this.#pool = new Pool(path, connections);
    bind(this, AGENT_METHODS, "agent", (name) => (params, options) => this.call(name, params, options));
  }

  async call(method, params = {}, options = {}) {
    const row = AGENT_METHODS[method];
    const sent = row?.keyed ? { ...params, key: params.key ?? randomBytes(16).toString("hex") } : params;
    try {
      const result = await this.#repeat(requestOf(method, sent), options, row !== undefined || "key" in sent);
      return answerOf(row, result);
    } catch (problem) {
      if (problem instanceof CloveError) Object.assign(problem, { method, key: sent.key });
      throw problem;
    }
  }

  grants() {
    return this.grant.listAll();
  }

  async request({ within, ...message }, options) {
    const ms = within === undefined ? undefined : Math.max(1, Math.round(within));
    const sent = await this.mail.send({ ...message, asks: true, expires_ms: ms }, options);
    const { message: answer } = await this.mail.answer({ id: sent.id, within_ms: ms }, options);
    await this.mail.ack({ ids: [answer.id] }, options);
    return answer;
  }

  async upload(content, options) {
    const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    const { upload } = await this.blob.open({ bytes: bytes.length }, options);
    for (let offset = 0; offset < bytes.length; offset += PART) {
      await this.blob.write({ upload, offset, data: bytes.subarray(offset, offset + PART).toString("base64") }, options);
    }
    return this.blob.close({ upload }, options);
  }

  async download(sha256, { at, ...options } = {}) {
    const parts = [];
    let offset;
    do {
      const part = await this.blob.read({ blob: sha256, at, offset }, options);
      parts.push(Buffer.from(part.data, "base64"));
      offset = part.next_offset;
    } while (offset);
    return Buffer.concat(parts);
  }

  listen(options = {}) {
    return new Notifications(this.path, this.#patience, options, this.#listening);
  }

  close() {
    this.#pool.close();
    for (const notifications of this.#listening) notifications.close();
  }

  async check() {
    await this.#pool.use(async () => {});
  }

  async #repeat(text, { timeout = this.#timeout, signal }, repeatable) {
    const backoff = new Backoff(this.#patience);
    for (;;) {
      let failure;
      try {
        return await this.#pool.use((connection) => connection.ask(text, { timeout, signal }));
      } catch (problem) {
        if (problem instanceof TimeoutError) throw new UnansweredError(`no answer came within ${timeout} ms`, { word: "unanswered" });
        if (problem instanceof LostError) failure = unreachable(this.path, problem);
        else if (problem instanceof BusyError || problem instanceof DrainingError) failure = problem;
        else throw problem;
      }
      const delay = repeatable ? backoff.next() : undefined;
      if (delay === undefined) throw failure;
      await sleep(delay, undefined, { signal });
    }
  }
}

// Makes an agent. UnreachableError: there is no socket.
export async function connect(options) {
  const agent = new Agent(options);
  try {
    await agent.check();
  } catch (problem) {
    if (!(problem instanceof LostError)) throw problem; // calls try again
  }
  return agent;
}

function requestOf(method, params) {
  const text = line(method, params, 1);
  // The gate would end the connection, and the call would be repeated in vain.
  if (Buffer.byteLength(text) > MAX_LINE + 1) {
    throw new TooLargeError(`a call has at most ${MAX_LINE} bytes`, { word: "too-large", hint: "send less at once" });
  }
  return text;
}

// Connections for calls: each call has one to itself, so answers need no matching.
class Pool {
  #path;
  #free; // how many more may be in use
  #waiting = [];
  #idle = [];
  #closed = false;

  constructor(path, most) {
    this.#path = path;
    this.#free = most;
  }

  // Does work with a connection that nothing else uses.
  async use(work) {
    await this.#enter();
    try {
      if (this.#closed) throw new Error("the agent's connections are closed");
      const connection = this.#idle.pop() ?? (await open(this.#path));
      try {
        return await work(connection);
      } finally {
        if (connection.usable && !this.#closed) this.#idle.push(connection);
        else connection.close();
      }
    } finally {
      this.#leave();
    }
  }

  async #enter() {
    if (this.#free > 0) this.#free--;
    else await new Promise((go) => this.#waiting.push(go));
  }

  #leave() {
    const go = this.#waiting.shift();
    if (go) go();
    else this.#free++;
  }

  close() {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }
}

// The notifications of one agent. Each iteration has a connection of its own.
class Notifications {
  #path;
  #patience;
  #options;
  #listening; // the agent's: those that it closes
  #open = new Set();
  #closed = false;

  constructor(path, patience, options, listening) {
    this.#path = path;
    this.#patience = patience;
    this.#options = options;
    this.#listening = listening.add(this);
  }

  close() {
    this.#closed = true;
    this.#listening.delete(this);
    for (const connection of this.#open) connection.close();
  }

  async *[Symbol.asyncIterator]() {
    this.#listening.add(this);
    try {
      yield* this.#notes();
    } finally {
      this.#listening.delete(this);
    }
  }

  async *#notes() {
    let backoff = new Backoff(this.#patience);
    while (!this.#closed) {
      let connection;
      let delay;
      try {
        connection = await open(this.#path);
        this.#open.add(connection);
        connection.send(line("agent.listen", {}, 1)).catch(() => {}); // receive reports it
        while (!this.#closed) {
          const note = noteOf(await connection.receive(this.#options));
          if (note) {
            backoff = new Backoff(this.#patience);
            yield note;
          }
        }
      } catch (problem) {
        if (this.#closed || problem instanceof TimeoutError) return;
        if (!(problem instanceof LostError || problem instanceof BusyError)) throw problem;
        delay = backoff.next();
        if (delay === undefined) throw unreachable(this.#path, problem);
      } finally {
        this.#open.delete(connection);
        connection?.close();
      }
      await sleep(delay, undefined, { signal: this.#options.signal });
    }
  }
}

// The notification in a message; undefined: it is the answer to agent.listen.
function noteOf({ method, params = {}, error }) {
  if (error) throw errorOf(error);
  return method === undefined ? undefined : { method, params };
}
