import assert from "node:assert/strict";
import { test } from "node:test";

import * as clove from "../index.js";
import { Gate } from "./gate.js";

async function both(t, options) {
  const gate = await new Gate().start();
  const agent = await clove.connect({ path: gate.path, patience: 60_000, ...options });
  t.after(() => {
    agent.close();
    gate.close();
  });
  return { gate, agent };
}

test("answers have their lists", async (t) => {
  const { agent } = await both(t);
  assert.equal((await agent.grant.check({ what: "tool:fetch" })).allowed, true);
  const me = await agent.get();
  assert.deepEqual([me.name, me.grants[0].id, me.budgets], ["worker", "g1", []]);
});

test("a reservation is settled", async (t) => {
  const { agent } = await both(t);
  const { reservation } = await agent.budget.reserve({ amounts: { tokens: 300 } });
  const [budget] = (await agent.budget.settle({ reservation, amounts: { tokens: 120 } })).budgets;
  assert.deepEqual([budget.used, budget.reserved], [120, 0]);
});

test("a request sends, waits and acknowledges", async (t) => {
  const { gate, agent } = await both(t);
  const answer = await agent.request({ to: "critic", body: { n: 21 }, within: 1500, priority: 3 });
  assert.deepEqual([answer.sender, answer.body], ["critic", { n: 42 }]);
  const calls = gate.calls.map(([method, { key, ...params }]) => [method, params]);
  const sent = { to: "critic", body: { n: 21 }, priority: 3, expires_ms: 1500, asks: true };
  assert.deepEqual(calls, [["mail.send", sent], ["mail.answer", { id: "m1", within_ms: 1500 }], ["mail.ack", { ids: ["a1"] }]]);
});

test("all parts of a list", async (t) => {
  const { agent } = await both(t);
  const ids = [];
  for await (const grant of agent.grants()) ids.push(grant.id);
  assert.deepEqual(ids, ["g1", "g2", "g3", "g4", "g5", "g6"]);
});

test("an error has the class of its word", async (t) => {
  const { gate, agent } = await both(t);
  await assert.rejects(agent.grant.derive({ from: "g1", grant: "tool:write" }), (e) => {
    assert.ok(e instanceof clove.DeniedError && e instanceof clove.CloveError);
    assert.deepEqual([e.code, e.word, e.step, e.rule, e.hint, e.method, e.key.length], [-32004, "denied", "derive", "g1", "ask for less", "grant.derive", 32]);
    return true;
  });
  await assert.rejects(agent.budget.reserve({ amounts: { tokens: 1001 } }), clove.BudgetError);
  assert.equal(gate.calls.length, 2, "a refusal is no reason to try again");
});

test("parameters as they are sent", async (t) => {
  const { gate, agent } = await both(t);
  const expires = new Date(Date.UTC(2027, 0, 1));
  await assert.rejects(agent.grant.derive({ from: "g1", grant: "tool:fetch", expires, uses: undefined, key: "k" }), clove.DeniedError);
  assert.deepEqual(gate.calls, [["grant.derive", { from: "g1", grant: "tool:fetch", expires: "2027-01-01T00:00:00.000Z", key: "k" }]]);
});

test("a method that is not known here", async (t) => {
  const { agent } = await both(t);
  await assert.rejects(agent.call("none.such", { to: "b" }), clove.MethodError);
});

test("a long call is not sent", async (t) => {
  const { gate, agent } = await both(t);
  await assert.rejects(agent.grant.check({ what: "tool:" + "x".repeat(70000) }), clove.TooLargeError);
  assert.deepEqual(gate.calls, []);
});

test("many calls at once share a few connections", async (t) => {
  const { gate, agent } = await both(t);
  await Promise.all(Array.from({ length: 100 }, () => agent.budget.charge({ amounts: { tokens: 1 } })));
  assert.equal(gate.used, 100);
  assert.ok(gate.accepted <= 8, `${gate.accepted} connections`);
});

test("nothing is counted twice", async (t) => {
  for (const plans of [["busy", "busy"], ["lose"], ["lose-after"], ["full"], ["lose-after", "busy", "lose"]]) {
    const { gate, agent } = await both(t);
    gate.plans = [...plans];
    await agent.budget.charge({ amounts: { tokens: 5 } });
    assert.deepEqual([gate.used, gate.calls.length], [5, plans.length + 1], plans.join());
  }
});

test("control: without a key the server of these tests counts twice", async (t) => {
  const { gate } = await both(t);
  gate.once("budget.charge", { amounts: { tokens: 5 } });
  gate.once("budget.charge", { amounts: { tokens: 5 } });
  assert.equal(gate.used, 10);
});

test("an idle connection that was closed", async (t) => {
  const { gate, agent } = await both(t);
  await agent.get();
  gate.drop();
  assert.equal((await agent.get()).name, "worker");
});

test("the time is bounded", async (t) => {
  for (const [plan, kind] of [["busy", clove.BusyError], ["lose", clove.UnreachableError]]) {
    const { gate, agent } = await both(t, { patience: 1000 });
    gate.plans = Array(10000).fill(plan);
    await assert.rejects(agent.budget.charge({ amounts: { tokens: 5 } }), kind);
  }
});

test("what is not known to be safe is not repeated", async (t) => {
  const { gate, agent } = await both(t);
  gate.plans = ["lose", "lose"];
  await assert.rejects(agent.call("none.such", { to: "b" }), clove.UnreachableError);
  assert.equal(gate.calls.length, 1);
});

test("an answer that does not come", async (t) => {
  const { gate, agent } = await both(t, { timeout: 100 });
  gate.plans = ["silent"];
  const problem = await agent.budget.charge({ amounts: { tokens: 5 } }).catch((e) => e);
  assert.ok(problem instanceof clove.UnansweredError);
  await agent.budget.charge({ amounts: { tokens: 5 }, key: problem.key }, { timeout: 60_000 });
  assert.equal(gate.used, 5);
});

test("a signal ends a call and its connection", async (t) => {
  const { gate, agent } = await both(t);
  gate.plans = ["silent"];
  const abort = new AbortController();
  const call = agent.get(undefined, { signal: abort.signal });
  setTimeout(() => abort.abort(new Error("enough")), 50);
  await assert.rejects(call, /enough/);
  while (gate.connections.size > 0) await new Promise((next) => setTimeout(next, 5));
  assert.equal((await agent.get()).name, "worker");
});

test("without a socket the error says what to do", async () => {
  await assert.rejects(clove.connect({ path: "/nonexistent/agent.sock" }), (e) => e instanceof clove.UnreachableError && e.hint.includes("--agent-socket"));
});

test("a closed agent", async (t) => {
  const { agent } = await both(t);
  agent.close();
  await assert.rejects(agent.get(), /are closed/);
});
