// The reference client of MCP calls tools of the run it is in.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "a client", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.CLOVE_MCP_URL)));
const text = (result) => (result.isError ? "error: " : "") + result.content.map((c) => c.text).join("");

const { tools } = await client.listTools();
console.log("tools:", tools.map((t) => t.name).filter((name) => !name.startsWith("clove_")).join(" "));
console.log("schema:", JSON.stringify(tools.find((t) => t.name === "echo").inputSchema.required));
console.log("echo:", text(await client.callTool({ name: "echo", arguments: { text: "hello" } })));
console.log("write:", text(await client.callTool({ name: "write", arguments: { path: "/tmp/by-tool", content: "a line\n" } })));
console.log("read:", text(await client.callTool({ name: "read", arguments: { path: "/tmp/by-tool" } })).trim());
console.log("wrong:", text(await client.callTool({ name: "echo", arguments: { words: 1 } })).split("\n")[0]);
try {
  console.log("exec:", text(await client.callTool({ name: "exec", arguments: { argv: ["id"] } })));
} catch (e) {
  console.log("exec:", e.message);
}
await client.close();
