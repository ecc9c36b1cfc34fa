// Programs in TypeScript: the compiler must take them, but for the marked lines.

import * as clove from "clove";
import { Cloved, type Spec } from "clove";

const agent = await clove.connect({ patience: 1000 });
const allowed: boolean = (await agent.grant.check({ what: "tool:fetch" })).allowed;
await agent.budget.charge({ amounts: { tokens: 1 }, key: "k" }, { timeout: 5 });
const answered: string = (await agent.request({ to: "critic", body: { n: 1 }, within: 1000 })).sender;
for await (const grant of agent.grants()) grant.id.length;
for await (const note of agent.listen({ timeout: 1 })) {
  if (note.method === "budget.warning") note.params.budget.dimension.length;
}
try {
  await agent.get();
} catch (e) {
  if (e instanceof clove.DeniedError) e.word.length;
}
const cloved = new Cloved();
const spec: Spec = { ...clove.STANDARD, name: "x", command: ["a"] };
const { run } = await cloved.start({ command: ["sleep", "1"], spec });
const name: string = run.spec.name;
const code: number = (await cloved.exec(name, ["id"], { input: "a" })).exitCode;
for await (const line of cloved.logs(name, { tail: 1 })) line.text?.length;
const events = cloved.event.follow({ after: 0 });
for await (const { event } of events) event?.sequence.toFixed();
const last: number = events.result!.last;
const session = cloved.run.exec({ run: name, exec: { command: ["cat"] }, stdin: true });
for await (const { data } of session) data.length;
const status: string = (await cloved.run.wait({ run: name })).record.status;
// @ts-expect-error an agent calls for itself
await agent.grant.check({ run: "x", what: "y" });
// @ts-expect-error the request says that it asks
await agent.request({ to: "critic", body: 1, asks: false });
// @ts-expect-error there is no such method
await cloved.run.fly();
// @ts-expect-error a parameter is missing
await cloved.run.get({});
