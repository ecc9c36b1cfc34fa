// A socket server that answers as clove-gate and what is behind it do.
//
// It has one dimension, tokens, of 1000, and one grant, tool:fetch. A test says what goes
// wrong: plans are taken one for each call, in order.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const GRANTED = 1000;
const failure = (code, word, message, data) => ({ code, message, data: { word, ...data } });
const BUSY = failure(-32005, "busy", "cloved is away", { hint: "try again in a moment" });

class Refusal extends Error {
  constructor(error) {
    super(error.message);
    this.error = error;
  }
}

// Serves lines on a socket in a folder of its own; line gets each message and its socket.
export class Server {
  accepted = 0;
  connections = new Set();
  #folder = mkdtempSync(join(tmpdir(), "clove-sdk-"));
  path = join(this.#folder, "a.sock");

  start() {
    this.listener = createServer((socket) => {
      this.accepted++;
      this.connections.add(socket);
      let rest = "";
      socket.on("error", () => {});
      socket.on("close", () => this.connections.delete(socket));
      socket.on("data", (chunk) => {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop();
        for (const line of lines) this.line(socket, JSON.parse(line));
      });
    });
    return new Promise((ready) => this.listener.listen(this.path, () => ready(this)));
  }

  send(socket, message) {
    socket.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  // Ends every connection.
  drop() {
    for (const socket of this.connections) socket.destroy();
  }

  // Ends the listener and every connection.
  stop() {
    this.drop();
    this.listener.close();
  }

  close() {
    this.stop();
    rmSync(this.#folder, { recursive: true });
  }
}

export class Gate extends Server {
  plans = []; // "busy", "lose" (the call is not done), "lose-after" (it is), "silent", "full"
  calls = []; // method and parameters, as they came
  used = 0;
  #reservations = new Map();
  #answers = new Map(); // by key
  #waiting = [];
  #listening = new Set();

  line(socket, { id, method, params }) {
    this.calls.push([method, params]);
    const plan = this.plans.shift() ?? "";
    if (plan === "lose") return socket.destroy();
    if (plan === "silent") return;
    const answer = { id };
    if (plan === "busy") answer.error = BUSY;
    else if (plan === "full") Object.assign(answer, { id: null, error: BUSY });
    else {
      try {
        answer.result = this.once(method, params);
      } catch (problem) {
        answer.error = problem.error;
      }
    }
    if (plan === "lose-after") return socket.destroy();
    this.send(socket, answer);
    if (plan === "full") socket.end();
    if (method === "agent.listen") {
      this.#listening.add(socket);
      for (const note of this.#waiting.splice(0)) this.send(socket, note);
    }
  }

  once(method, { key, ...params }) {
    if (this.#answers.has(key)) return this.#answers.get(key);
    const serve = this.methods[method];
    if (!serve) throw new Refusal(failure(-32601, "method", `there is no method ${method} for agents`, { hint: "agent.get is one" }));
    const result = serve(params);
    if (key) this.#answers.set(key, result);
    return result;
  }

  // Sends a notification to who listens, or keeps it.
  notify(method, params) {
    const listening = [...this.#listening].filter((socket) => !socket.destroyed);
    for (const socket of listening) this.send(socket, { method, params });
    if (listening.length === 0) this.#waiting.push({ method, params });
  }

  budget() {
    return {
      account: "0/run:r1", dimension: "tokens", granted: GRANTED, warn_at: 800, at_end: "end",
      reserved: [...this.#reservations.values()].reduce((sum, n) => sum + n, 0), used: this.used, peak: this.used,
      since: "2026-11-23T04:52:37.123456789Z", spent: this.used >= GRANTED, of_a_newer_clove: 1,
    };
  }

  grant(number) {
    return { id: `g${number}`, grant: "tool:fetch", holder: "r1", giver: "uid:0", created: "2026-11-23T04:52:37Z" };
  }

  methods = {
    "agent.listen": () => ({}),
    "agent.get": () => ({ id: "r1", name: "worker", owner: 0, namespace: "", state: "running", grants: [this.grant(1)], budgets: null, refused: 0 }),
    "grant.check": ({ what }) => (what === "tool:fetch" ? { allowed: true, grant: "g1", reason: "grant g1 allows it" } : { allowed: false, reason: "no grant of this kind" }),
    "grant.list": ({ after = "g0" }) => {
      const begin = Number(after.slice(1));
      return { grants: [this.grant(begin + 1), this.grant(begin + 2)], ...(begin < 4 ? { next: `g${begin + 2}` } : {}) };
    },
    "grant.derive": ({ from }) => {
      throw new Refusal(failure(-32004, "denied", "it would allow more", { step: "derive", rule: from, hint: "ask for less" }));
    },
    "mail.send": () => ({ id: "m1", trace: "t1" }),
    "mail.answer": ({ id }) => ({ message: { id: "a1", from: "r2", sender: "critic", to: "worker", sent: "2026-11-23T04:52:37Z", causation: "c1", answers: id, body: { n: 42 } } }),
    "mail.ack": () => ({}),
    "budget.get": () => ({ budgets: [this.budget()] }),
    "budget.charge": ({ amounts }) => {
      this.used += amounts.tokens;
      return { budgets: [this.budget()] };
    },
    "budget.reserve": ({ amounts }) => {
      if (this.budget().reserved + this.used + amounts.tokens > GRANTED) throw new Refusal(failure(-32011, "budget", "200 tokens are left", { hint: "clove budget raise gives more" }));
      const reservation = `s${this.#reservations.size + 1}`;
      this.#reservations.set(reservation, amounts.tokens);
      return { reservation };
    },
    "budget.settle": ({ reservation, amounts }) => {
      this.#reservations.delete(reservation);
      this.used += amounts.tokens;
      return { budgets: [this.budget()] };
    },
  };
}
