// Sends a body that is larger than a call, and gets it back.

import { createHash } from "node:crypto";

import { connect } from "clove";

const agent = await connect();
const content = new Uint8Array(3_000_001).map((_, i) => (i * 7) ^ (i >> 8));
const blob = await agent.upload(content.subarray(0)); // a view, as Buffers are
const same = (got) => Buffer.compare(got, content) === 0 && blob.sha256 === createHash("sha256").update(got).digest("hex");
const at = { scope: "namespace", path: "big" };
await agent.state.set({ ...at, blob: blob.sha256 });
console.log(`${blob.bytes} bytes, the same: ${same(await agent.download(blob.sha256))}, by the key: ${same(await agent.download(blob.sha256, { at }))}`);
const word = (call) => call.then(() => "done", (problem) => problem.word);
console.log(`of none: ${await word(agent.download("0".repeat(64)))}, empty: ${await word(agent.upload(""))}`);
agent.close();
