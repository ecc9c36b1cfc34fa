// Starts a run, works in it, and waits for its end: the user's side of cloved. In a folder where
// npm install has added sdk/typescript, as root or a member of cloved's group:
//
//     node drive_run.mjs

import { Cloved } from "clove";

// Its stderr is closed: a shell reports there that a child was ended.
const AGENT = "exec 2>&-; trap 'echo asked to end; exit 3' TERM; echo begun; while :; do sleep 0.1; done";

const cloved = new Cloved();
const { run } = await cloved.start({ command: ["sh", "-c", AGENT], name: "driven" });
console.log(`${run.spec.name} is ${run.state}`);
try {
  await cloved.exec("driven", ["tee", "numbers"], { input: "3\n1\n2\n" });
  await cloved.copyIn("driven", "/tmp", cloved.copyOut("driven", "/workspace/numbers"));
  const done = await cloved.exec("driven", ["sort", "/tmp/numbers"]);
  console.log(done.exitCode, done.stdout.toString().trim().split("\n"));
  for await (const { line } of cloved.run.logs({ run: "driven", follow: true })) {
    console.log(`log: ${line.text}`);
    break;
  }
  await cloved.run.stop({ run: "driven" });
  const { record } = await cloved.run.wait({ run: "driven" });
  console.log(`${record.status} ${record.exit_code}`);
  const lines = [];
  for await (const line of cloved.logs("driven")) lines.push(line.text);
  console.log(`log: ${lines.join(", ")}`);
  const events = [];
  for await (const { event } of cloved.event.follow({ after: 0, run: run.spec.id, what: ["started", "ended"] })) events.push(event.what);
  console.log(`events: ${events.join(", ")}`);
} finally {
  await cloved.run.remove({ run: "driven", force: true });
}
