// Package people has the tools of clove mcp, for people's own programs: editors, coding agents, desktop
// applications. It answers the calls that clove-mcp makes of what such a program asks for, with the
// rights of the user that started clove mcp, and through cloved alone.
//
//	editor ── stdin, stdout ──▶ clove mcp ── pipes ──▶ clove-mcp     parses MCP; no rights
//	                            copies bytes                ║ tool.list, tool.call
//	                            Server.Handle ◀═════════════╝
//	                                │ run.start, run.attach, run.exec, run.diff, run.apply
//	                                ▼
//	                             cloved ── one sandbox, and one for each agent
//
// The first call that needs the sandbox starts it. It is a foreground run: it ends with the connection
// that holds it, and so with clove mcp, however that ends. Each call is an exec session of it with a
// time of its own, and whatever a call leaves running ends with the call. Files stay from call to call.
// Over HTTP (Options.Handles) there are several, each used by a handle that cannot be
// guessed; one that is unused ends.
//
// The agents that the tools list, ask and kill are those that this Server started; they are held in the
// same way. Other runs of the user are out of reach: a program that was given clove mcp gets no more.
//
// A tool never takes an answer that is a person's. apply_changes writes only what a dry run has shown,
// by its digest, and leaves out what programs of the host execute by themselves and what instructs the
// next agent: `clove apply` asks a person about those.
//
// The package reads no MCP, no archive and no file that a sandbox made. Output is passed on as bytes.
package people
