// A small agent that passes on less than it was given, and takes it back.
//
//     sudo clove run -v "$PWD/sdk/typescript:/workspace/node_modules/clove:ro" \
//         --grant tool:fetch examples/grant_agent.mjs

import { DeniedError, connect } from "clove";

const agent = await connect();
for (const what of ["tool:fetch", "tool:write"]) {
  const { allowed } = await agent.grant.check({ what });
  console.log(`${what}: ${allowed ? "yes" : "no"}`);
}
const [held] = (await agent.grant.list()).grants;
const { grant } = await agent.grant.derive({ from: held.id, grant: "tool:fetch", uses: 1, reason: "for one page" });
console.log(`derived ${grant.grant} for ${grant.uses_left} use`);
try {
  await agent.grant.derive({ from: grant.id, grant: "tool:fetch", uses: 2 });
} catch (problem) {
  if (!(problem instanceof DeniedError)) throw problem;
  console.log(`more than that: ${problem.word}`);
}
const { revoked } = await agent.grant.revoke({ id: grant.id });
let left = 0;
for await (const _ of agent.grants()) left++;
console.log(`revoked ${revoked.length}, left ${left}`);
