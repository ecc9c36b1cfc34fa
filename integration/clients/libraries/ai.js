// The library ai with its providers, in each format.
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { anthropic } from "@ai-sdk/anthropic";
import { openai } from "@ai-sdk/openai";
import { question, report, forecast, parameters } from "./common.js";

const tools = { forecast: tool({ inputSchema: jsonSchema(parameters), execute: forecast }) };
const formats = {
  chat: { model: openai.chat("coder") },
  // What the provider does not keep, the library must send whole.
  responses: { model: openai.responses("coder"), providerOptions: { openai: { store: false } } },
  messages: { model: anthropic("coder") },
};

for (const [name, format] of Object.entries(formats)) {
  const options = { ...format, maxRetries: 0 };

  await report(name, async () => (await generateText({ ...options, prompt: question.plain })).text);

  await report(`${name} stream`, async (piece) => {
    for await (const part of streamText({ ...options, prompt: question.plain, onError: () => {} }).textStream) piece(part);
  });

  await report(`${name} tool`, async () => (await generateText({ ...options, tools, stopWhen: stepCountIs(3), prompt: question.tool })).text);

  await report(`${name} error`, () => generateText({ ...options, prompt: question.error }));
}
