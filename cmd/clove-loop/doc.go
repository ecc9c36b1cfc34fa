// Command clove-loop is clove's own agent: package loop, inside a sandbox. clove shows it there
// read-only and starts it for `clove ask` and `clove chat` as the agent's program, with the agent's
// rights. It reads its order from its arguments (package loop/order) and the place of models from
// OPENAI_BASE_URL, keeps the conversation in ~/.clove, and exits with a status of package loop's.
package main
