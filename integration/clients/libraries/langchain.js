// LangChain's model of OpenAI, by chat completions.
import { ChatOpenAI } from "@langchain/openai";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { question, report, forecast, parameters } from "./common.js";

const llm = new ChatOpenAI({ model: "coder", maxRetries: 0 });

await report("invoke", async () => (await llm.invoke(question.plain)).content);

await report("stream", async (piece) => {
  for await (const chunk of await llm.stream(question.plain)) piece(chunk.content);
});

await report("tool", async () => {
  const able = llm.bindTools([{ type: "function", function: { name: "forecast", parameters } }]);
  const conversation = [new HumanMessage(question.tool)];
  const first = await able.invoke(conversation);
  conversation.push(first);
  for (const call of first.tool_calls) conversation.push(new ToolMessage({ tool_call_id: call.id, content: await forecast(call.args) }));
  return (await able.invoke(conversation)).content;
});

await report("error", () => llm.invoke(question.error));
