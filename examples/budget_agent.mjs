// A small agent that spends from a budget: it sums up chapters, and each costs tokens.
//
//     sudo clove run -v "$PWD/sdk/typescript:/workspace/node_modules/clove:ro" \
//         --budget tokens=1000 --at-end refuse examples/budget_agent.mjs
//
// It reserves the most that a chapter can cost before it begins, and settles what it has cost.
// So it stops in time, and never spends more than it was given. Without --at-end refuse, the
// reservation that does not fit would end the run.

import { BudgetError, connect } from "clove";

const CHAPTERS = { One: 260, Two: 240, Three: 310, Four: 280 }; // what each costs
const MOST = 320;

const agent = await connect();
for (const [chapter, tokens] of Object.entries(CHAPTERS)) {
  try {
    const { reservation } = await agent.budget.reserve({ amounts: { tokens: MOST } });
    await agent.budget.settle({ reservation, amounts: { tokens } });
  } catch (problem) {
    if (!(problem instanceof BudgetError)) throw problem;
    console.log(`chapter ${chapter} has to wait: ${problem.word}`);
    break;
  }
  console.log(`chapter ${chapter} took ${tokens} tokens`);
}
for await (const { method, params } of agent.listen({ timeout: 10_000 })) {
  if (method === "budget.warning") {
    console.log(`warned: ${params.budget.dimension} reached ${params.budget.warn_at}`);
    break;
  }
}
for (const budget of (await agent.budget.get()).budgets) {
  if (budget.dimension === "tokens") console.log(`used ${budget.used} of ${budget.granted} tokens`);
}
