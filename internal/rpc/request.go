package rpc

import (
	"bytes"
	"encoding/json"
)

// The standard's codes of a message that is not a request.
const (
	CodeParse   = -32700
	CodeRequest = -32600
)

// Request is a request or a notification that was received.
type Request struct {
	ID     json.RawMessage // a string or a number as it was sent; nil: it is a notification, or has no usable id
	Method string
	Params json.RawMessage // an object or an array; nil: there are none
	Fault  *Fault          // not nil: it is not a request, and this is the answer
}

// Fault is why a message is not a request.
type Fault struct {
	Code    int
	Message string
}

// Notification reports whether the request wants no answer.
func (r Request) Notification() bool { return r.ID == nil && r.Fault == nil }

// Message is the request as another connection can send it.
func (r Request) Message() Message { return Message{ID: r.ID, Method: r.Method, Params: r.Params} }

// Requests reads a line: one request, or all of a batch. A message that is not a
// request is among them, with its Fault.
func Requests(line []byte) (requests []Request, batch bool) {
	messages := []json.RawMessage{line}
	if batch = bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")); batch {
		messages = nil
		if json.Unmarshal(line, &messages) != nil {
			return []Request{{Fault: &Fault{CodeParse, "the batch is not JSON"}}}, false
		}
	}
	for _, text := range messages {
		requests = append(requests, readRequest(text))
	}
	return requests, batch
}

// readRequest compares keys exactly, which encoding/json does not: a key with
// another case must not be taken for a part of the request.
func readRequest(text json.RawMessage) (r Request) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		r.Fault = &Fault{CodeParse, "the request is not a JSON object"}
		return r
	}
	fail := func(code int, message string) {
		if r.Fault == nil {
			r.Fault = &Fault{code, message}
		}
	}
	// null is taken for no id: JSON-RPC keeps it for the answer to a message whose id is
	// not known.
	if id, there := present(fields, "id"); there && (id[0] == '{' || id[0] == '[' || id[0] == 't' || id[0] == 'f') {
		fail(CodeRequest, "the id is neither a string nor a number")
	} else if there {
		r.ID = id
	}
	var version string
	if text, there := fields["jsonrpc"]; there && json.Unmarshal(text, &version) != nil {
		fail(CodeParse, "the version is not a string")
	} else if version != Version {
		fail(CodeRequest, "the version (jsonrpc) is not "+Version)
	}
	if text, there := fields["method"]; there && json.Unmarshal(text, &r.Method) != nil {
		fail(CodeParse, "the method is not a string")
	} else if r.Method == "" {
		fail(CodeRequest, "no method is named")
	}
	if params, there := present(fields, "params"); there && params[0] != '{' && params[0] != '[' {
		fail(CodeRequest, "the parameters are neither an object nor an array")
	} else if there {
		r.Params = params
	}
	for key := range fields {
		if !requestKeys[key] {
			fail(CodeRequest, "a request has only jsonrpc, id, method and params")
		}
	}
	return r
}

var requestKeys = map[string]bool{"jsonrpc": true, "id": true, "method": true, "params": true}

// present returns a field that is there and not null.
func present(fields map[string]json.RawMessage, key string) (value json.RawMessage, there bool) {
	value = fields[key]
	return value, len(value) > 0 && string(value) != "null"
}
