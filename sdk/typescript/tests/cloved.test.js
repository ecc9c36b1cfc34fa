import assert from "node:assert/strict";
import { test } from "node:test";

import { Cloved, ConflictError, NotFoundError, STANDARD, UnansweredError, UnreachableError } from "../index.js";
import { Server } from "./gate.js";

// Answers as cloved does. One run, web, lives.
class Daemon extends Server {
  lines = [];

  line(socket, message) {
    this.lines.push(message);
    const { id, method, params } = message;
    const output = (stream, text) => this.send(socket, { method: "session.output", params: { stream, data: Buffer.from(text).toString("base64") } });
    const answer = (result) => this.send(socket, { id, result });
    const refuse = (code, word, text) => this.send(socket, { id, error: { code, message: text, data: { word } } });
    switch (method) {
      case "run.start":
        return answer({ run: { spec: params.spec, state: "running" } });
      case "run.list":
        return answer(params.after ? { runs: [{ spec: { name: "b" } }] } : { runs: [{ spec: { name: "a" } }], next: "x" });
      case "run.prune":
        return answer({ removed: null });
      case "run.wait":
        return params.run === "web" ? undefined : refuse(-32001, "not-found", "there is no such run");
      case "run.exec":
        socket.command = params.exec.command;
        if (params.exec.command[0] === "cat") return; // it ends with its input
        output("stdout", "out");
        output("stderr", "err");
        this.send(socket, { method: "session.taken", params: {} });
        return this.send(socket, { id, result: { exit_code: 3 } });
      case "session.input":
        return this.send(socket, { method: "session.output", params: { stream: "stdout", data: params.data } });
      case "session.close_input":
        return this.send(socket, { id: 1, result: { exit_code: 0 } });
      case "run.copy_out":
        output("tar", "archive");
        return refuse(-32002, "conflict", "a part is left out");
      case "run.logs":
        this.send(socket, { method: "run.log", params: { id, lines: [{ text: "one" }, { text: "two" }] } });
        return answer({});
      case "event.follow":
        this.send(socket, { method: "event.happened", params: { id, event: { sequence: 7, what: "started" } } });
        return params.follow ? undefined : answer({ last: 7 });
    }
  }
}

async function both(t) {
  const daemon = await new Daemon().start();
  t.after(() => daemon.close());
  return { daemon, cloved: new Cloved({ path: daemon.path }) };
}

test("a start has the standard level below what is named", async (t) => {
  const { cloved } = await both(t);
  const { run } = await cloved.start({ command: ["/bin/sleep", "1"], labels: { a: "b" } });
  assert.match(run.spec.name, /^sleep-[0-9a-f]{8}$/);
  assert.deepEqual([run.spec.command, run.spec.labels, run.spec.limits], [["/bin/sleep", "1"], { a: "b" }, STANDARD.limits]);
});

test("all parts of a list", async (t) => {
  const { cloved } = await both(t);
  const names = [];
  for await (const run of cloved.run.listAll({ all: true })) names.push(run.spec.name);
  assert.deepEqual([names, await cloved.run.prune()], [["a", "b"], { removed: [] }]);
});

test("an error has the class of its word, and the method", async (t) => {
  const { cloved } = await both(t);
  await assert.rejects(cloved.run.wait({ run: "none" }), (e) => e instanceof NotFoundError && e.method === "run.wait");
});

test("a command has its output and its status", async (t) => {
  const { cloved } = await both(t);
  const done = await cloved.exec("web", ["false"], { env: { A: "b" } });
  assert.deepEqual([done.exitCode, String(done.stdout), String(done.stderr), done.failure], [3, "out", "err", undefined]);
});

test("a command reads a long input, in pieces", async (t) => {
  const { daemon, cloved } = await both(t);
  const input = "x".repeat(100_000);
  assert.equal(String((await cloved.exec("web", ["cat"], { input })).stdout), input);
  assert.equal(daemon.lines.filter((m) => m.method === "session.input").length, 4);
});

test("an input that fails ends the command", async (t) => {
  const { daemon, cloved } = await both(t);
  async function* source() {
    yield "x";
    throw new Error("no more");
  }
  await assert.rejects(cloved.exec("web", ["cat"], { input: source() }), /no more/);
  assert.ok(!daemon.lines.some((m) => m.method === "session.close_input"));
});

test("too much output ends the command", async (t) => {
  const { cloved } = await both(t);
  await assert.rejects(cloved.exec("web", ["false"], { limit: 2 }), RangeError);
});

test("a session in both directions", async (t) => {
  const { cloved } = await both(t);
  const session = cloved.run.exec({ run: "web", exec: { command: ["cat"] }, stdin: true });
  await session.send("hi");
  const { value } = await session.next();
  assert.deepEqual([value.stream, String(value.data)], ["stdout", "hi"]);
  await session.closeInput();
  assert.deepEqual(await session.end(), { exit_code: 0 });
});

test("a copy that is refused throws at its end", async (t) => {
  const { cloved } = await both(t);
  const pieces = [];
  await assert.rejects(async () => {
    for await (const piece of cloved.copyOut("web", "/x")) pieces.push(String(piece));
  }, ConflictError);
  assert.deepEqual(pieces, ["archive"]);
});

test("a copy goes in", async (t) => {
  const { daemon, cloved } = await both(t);
  await cloved.copyIn("web", "/tmp", ["arch", "ive"]);
  assert.equal(daemon.lines.filter((m) => m.method === "session.input").map((m) => Buffer.from(m.params.data, "base64")).join(""), "archive");
});

test("logs and events", async (t) => {
  const { daemon, cloved } = await both(t);
  const lines = [];
  for await (const line of cloved.logs("web", { tail: 2 })) lines.push(line.text);
  assert.deepEqual(lines, ["one", "two"]);
  const events = cloved.event.follow({ after: 0 });
  assert.equal((await events.next()).value.event.sequence, 7);
  assert.deepEqual(await events.end(), { last: 7 });
  for await (const { event } of cloved.event.follow({ follow: true })) {
    assert.equal(event.what, "started");
    break; // closes the connection
  }
  while (daemon.connections.size > 0) await new Promise((next) => setTimeout(next, 5));
});

test("a waiting call ends by its signal, by its time, and with its connection", async (t) => {
  const { daemon, cloved } = await both(t);
  await assert.rejects(cloved.run.wait({ run: "web" }, { signal: AbortSignal.timeout(30) }), { name: "TimeoutError" });
  await assert.rejects(cloved.run.wait({ run: "web" }, { timeout: 30 }), UnansweredError);
  const waiting = cloved.run.wait({ run: "web" });
  setTimeout(() => daemon.drop(), 50);
  await assert.rejects(waiting, UnreachableError);
});

test("without cloved there is one clear error", async () => {
  await assert.rejects(new Cloved({ path: "/nonexistent/clove.sock" }).daemon.info(), (e) => e instanceof UnreachableError && e.hint.includes("start cloved"));
});
