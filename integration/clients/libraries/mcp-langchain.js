// LangChain's adapter has the tools of the run it is in.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";

const client = new MultiServerMCPClient({ mcpServers: { clove: { transport: "http", url: process.env.CLOVE_MCP_URL } } });
const tools = await client.getTools();
const echo = tools.find((t) => t.name.endsWith("echo"));
console.log("echo:", await echo.invoke({ text: "hello" }));
await client.close();
