package mcp

import (
	"encoding/json"
	"net/http"
)

// Headers of MCP.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// stateless is the first revision without sessions. Revisions are dates.
const stateless = "2026-07-28"

// message is what of a request decides who serves it.
type message struct {
	Method string `json:"method"`
	Params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
}

// read reads a body as far as it is needed here; what is no message, the SDK refuses.
func read(body []byte) (m message) {
	_ = json.Unmarshal(body, &m)
	return m
}

// current reports whether a request is of a revision without sessions. Header and body must agree, which
// the handler of that revision checks.
func (m message) current(header http.Header) bool {
	var version string
	_ = json.Unmarshal(m.Params.Meta["io.modelcontextprotocol/protocolVersion"], &version)
	return header.Get(versionHeader) >= stateless || version >= stateless || m.Method == "server/discover"
}
