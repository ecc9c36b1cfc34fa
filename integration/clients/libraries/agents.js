// OpenAI's library of agents, by responses and by chat completions.
import OpenAI from "openai";
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, tool } from "@openai/agents";
import { question, report, forecast, parameters } from "./common.js";

setDefaultOpenAIClient(new OpenAI({ maxRetries: 0 }));

for (const api of ["responses", "chat_completions"]) {
  setOpenAIAPI(api);
  const plain = new Agent({ name: "plain", model: "coder" });
  const able = new Agent({
    name: "able",
    model: "coder",
    tools: [tool({ name: "forecast", description: "the weather", parameters, execute: forecast })],
  });

  await report(api, async () => (await run(plain, question.plain)).finalOutput);

  await report(`${api} stream`, async (piece) => {
    const result = await run(plain, question.plain, { stream: true });
    for await (const part of result.toTextStream()) piece(part);
    await result.completed;
  });

  await report(`${api} tool`, async () => (await run(able, question.tool)).finalOutput);

  await report(`${api} error`, () => run(plain, question.error));
}
