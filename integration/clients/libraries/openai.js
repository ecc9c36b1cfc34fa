// OpenAI's library: chat completions and responses. Base URL and key are in the environment.
import OpenAI from "openai";
import { question, report, forecast, parameters } from "./common.js";

const client = new OpenAI({ maxRetries: 0 });
const model = "coder";
const messages = [{ role: "user", content: question.plain }];

await report("chat", async () => (await client.chat.completions.create({ model, messages })).choices[0].message.content);

await report("chat stream", async (piece) => {
  const stream = await client.chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } });
  let usage;
  for await (const chunk of stream) {
    piece(chunk.choices[0]?.delta.content);
    usage = chunk.usage ?? usage;
  }
  return usage.completion_tokens > 0 ? "with usage" : "without usage";
});

await report("chat tool", async () =>
  client.chat.completions
    .runTools({
      model,
      messages: [{ role: "user", content: question.tool }],
      tools: [{ type: "function", function: { name: "forecast", parameters, parse: JSON.parse, function: forecast } }],
    })
    .finalContent(),
);

await report("responses", async () => (await client.responses.create({ model, input: question.plain })).output_text);

await report("responses stream", async (piece) => {
  const stream = await client.responses.create({ model, input: question.plain, stream: true });
  let status;
  for await (const event of stream) {
    if (event.type === "response.output_text.delta") piece(event.delta);
    status = event.response?.status ?? status;
  }
  return status;
});

await report("responses tool", async () => {
  const input = [{ role: "user", content: question.tool }];
  const tools = [{ type: "function", name: "forecast", parameters, strict: true }];
  const first = await client.responses.create({ model, input, tools });
  input.push(...first.output);
  for (const call of first.output.filter((item) => item.type === "function_call"))
    input.push({ type: "function_call_output", call_id: call.call_id, output: await forecast(JSON.parse(call.arguments)) });
  return (await client.responses.create({ model, input, tools })).output_text;
});

await report("models", async () => {
  const names = [];
  for await (const m of client.models.list()) names.push(m.id);
  return names.join(" ");
});

await report("error", () => client.chat.completions.create({ model, messages: [{ role: "user", content: question.error }] }));
