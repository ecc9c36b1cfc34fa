import assert from "node:assert/strict";
import { test } from "node:test";

import * as clove from "../index.js";
import { Gate } from "./gate.js";

async function both(t) {
  const gate = await new Gate().start();
  const agent = await clove.connect({ path: gate.path, patience: 60_000 });
  t.after(() => {
    agent.close();
    gate.close();
  });
  return { gate, agent, warn: () => gate.notify("budget.warning", { budget: gate.budget() }) };
}

test("those that waited come first", async (t) => {
  const { gate, agent, warn } = await both(t);
  warn();
  gate.notify("of.a.newer.clove", { x: 1 });
  const seen = [];
  for await (const note of agent.listen()) {
    seen.push(note);
    if (seen.length === 2) break;
  }
  assert.equal(seen[0].params.budget.dimension, "tokens");
  assert.deepEqual(seen[1], { method: "of.a.newer.clove", params: { x: 1 } });
});

test("a lost connection is replaced", async (t) => {
  const { gate, agent, warn } = await both(t);
  warn();
  let count = 0;
  for await (const note of agent.listen()) {
    assert.equal(note.method, "budget.warning");
    if (++count === 2) break;
    gate.drop();
    setTimeout(warn, 100);
  }
});

test("closing ends an iteration", async (t) => {
  for (const what of ["agent", "notifications"]) {
    const { agent, warn } = await both(t);
    warn();
    const notifications = agent.listen();
    let count = 0;
    for await (const note of notifications) {
      count++;
      setTimeout(() => (what === "agent" ? agent : notifications).close(), 10);
    }
    assert.equal(count, 1, what);
  }
});

test("a timeout ends an iteration", async (t) => {
  const { agent } = await both(t);
  for await (const note of agent.listen({ timeout: 100 })) assert.fail(note.method);
});

test("a signal ends an iteration with its reason", async (t) => {
  const { agent } = await both(t);
  await assert.rejects(async () => {
    for await (const note of agent.listen({ signal: AbortSignal.timeout(50) })) assert.fail(note.method);
  }, { name: "TimeoutError" });
});

test("other calls go on meanwhile", async (t) => {
  const { agent } = await both(t);
  const iterator = agent.listen()[Symbol.asyncIterator]();
  const waiting = iterator.next();
  assert.equal((await agent.grant.check({ what: "tool:fetch" })).allowed, true);
  agent.close();
  assert.equal((await waiting).done, true);
});
