// Package loop is clove's own agent: it has a model do a task with a few tools until the model
// says that it is done. It runs inside a sandbox, as the program clove-loop, with the agent's
// rights and no others, and uses the standard library alone.
//
//	prompt ─▶ conversation ─▶ model ─▶ answer ─▶ conversation ─▶ its tool calls ─▶ results ─▶ conversation ─▶ model …
//	          (a file)        (HTTP on the sandbox's loopback)   (processes, files)
//
// The parts: package order is what it is asked to do, conversation the file that outlives it,
// model the client, tools what the model can call.
//
// A turn is a prompt and all up to its end: the tool done, or an answer without a tool call. The
// program that is started with the prompt of a turn that has not ended goes on with that turn,
// after a kill as well: a tool call without a result gets the result that it was interrupted. The
// answers of a turn are counted in the file, so that no number of starts gives it more of them.
//
// A conversation that is full is summed up by the model, and what was summed up stays in a file
// that the summary names. If that fails, the turn ends and the conversation stays as it is.
//
// The loop enforces nothing against the model: the sandbox does. What bounds it (answers of a
// turn, sizes) keeps a mistake from going on forever; budgets and limits are clove's.
package loop
