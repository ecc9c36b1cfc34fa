// Anthropic's library: messages and count_tokens. Base URL and key are in the environment.
import Anthropic from "@anthropic-ai/sdk";
import { question, report, forecast, parameters } from "./common.js";

const client = new Anthropic({ maxRetries: 0 });
const ask = (content) => ({ model: "coder", max_tokens: 200, messages: [{ role: "user", content }] });
const text = (message) => message.content.map((block) => block.text ?? "").join("");

await report("messages", async () => text(await client.messages.create(ask(question.plain))));

await report("messages stream", async (piece) => {
  const stream = client.messages.stream(ask(question.plain)).on("text", piece);
  const message = await stream.finalMessage();
  return `${message.stop_reason}, ${message.usage.output_tokens > 0 ? "with" : "without"} usage`;
});

await report("messages tool", async () => {
  const tools = [{ name: "forecast", input_schema: parameters }];
  const first = await client.messages.stream({ ...ask(question.tool), tools }).finalMessage();
  const call = first.content.find((block) => block.type === "tool_use");
  const result = { type: "tool_result", tool_use_id: call.id, content: await forecast(call.input) };
  const request = { ...ask(question.tool), tools };
  request.messages.push({ role: "assistant", content: first.content }, { role: "user", content: [result] });
  return text(await client.messages.create(request));
});

await report("count_tokens", async () => {
  const { model, messages } = ask(question.plain);
  return (await client.messages.countTokens({ model, messages })).input_tokens > 0 ? "some" : "none";
});

await report("error", () => client.messages.create(ask(question.error)));
