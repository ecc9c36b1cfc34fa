// Uses the server at the URL that is its argument, as programs do, and prints a line for each step.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);

const headers = token ? { Authorization: `Bearer ${token}` } : {};
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const client = new Client({ name: "test", version: "1" });

const text = ({ content, isError }) => `${isError ? "failed: " : ""}${content.map((c) => c.text ?? c.uri).join("|")}`;

// step prints what ask returns, or the error's code.
async function step(name, ask) {
  try {
    console.log(`${name}: ${await ask()}`);
  } catch (e) {
    console.log(`${name}: error ${e.code ?? e.message}`);
  }
}

await client.connect(transport);
await step("server", () => `${client.getServerVersion().name} ${transport.protocolVersion}`);
await step("tools", async () => (await client.listTools()).tools.map((t) => t.name).join(" "));
await step("call", async () => text(await client.callTool({ name: "echo", arguments: { text: "hello" } })));
await step("structured", async () => JSON.stringify((await client.callTool({ name: "structured", arguments: {} })).structuredContent));
await step("failure", async () => text(await client.callTool({ name: "fails", arguments: {} })));
await step("unknown", async () => text(await client.callTool({ name: "none", arguments: {} })));
await step("service", async () => text(await client.callTool({ name: "clove_mail_send", arguments: { to: "other", body: 1 } })));
await step("resource", async () => JSON.parse((await client.readResource({ uri: "clove://run" })).contents[0].text).name);
await step("progress", async () => {
  let seen = 0;
  await client.callTool({ name: "slow", arguments: {} }, undefined, { onprogress: () => seen++, timeout: 8000, resetTimeoutOnProgress: true });
  return seen > 1;
});
await step("cancel", async () => {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 200);
  return text(await client.callTool({ name: "held", arguments: {} }, undefined, { signal: abort.signal }));
});
await step("end", () => transport.terminateSession());
await client.close();
