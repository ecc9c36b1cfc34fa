// Package clients knows the configuration files of programs that use MCP servers, and changes one server's
// entry in them: bytes in, bytes out.
//
//	claude-code  ~/.claude.json                    .mcp.json           mcpServers.NAME
//	codex        ~/.codex/config.toml              .codex/config.toml  [mcp_servers.NAME]
//	opencode     ~/.config/opencode/opencode.json  opencode.json       mcp.NAME, or mcp.servers.NAME
//
// The text is not encoded anew: an entry is put into it or taken out, and every other byte stays, with
// comments, order and indentation. Before a result is returned it is read again, and must mean what the
// text meant before, with this one entry changed; otherwise the text is refused as it is. So a form of a
// file that the editing does not foresee ends in an error and not in a broken file.
//
// It opens no file and writes none.
package clients
