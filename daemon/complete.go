package daemon

import (
	"bytes"
	"encoding/json"

	"github.com/creachadair/jrpc2"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// complete gives the errors that the library itself makes what every error of
// the contract has: a code of the set, its word and a hint.
func complete(line []byte) []byte {
	batch := bytes.HasPrefix(line, []byte("["))
	answers := make([]rpc.Message, 1)
	var err error
	if batch {
		err = json.Unmarshal(line, &answers)
	} else {
		err = json.Unmarshal(line, &answers[0])
	}
	changed := false
	for i, m := range answers {
		if fault := own(m.Error); fault != nil {
			answers[i].Error, err = json.Marshal(fault)
			changed = true
		}
	}
	if err != nil || !changed {
		return line
	}
	var whole any = answers
	if !batch {
		whole = answers[0]
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return line
	}
	return text
}

// ownCodes are the library's codes that are not the contract's.
var ownCodes = map[jrpc2.Code]api.Code{
	jrpc2.Cancelled:        api.CodeCancelled,
	jrpc2.DeadlineExceeded: api.CodeCancelled,
	jrpc2.SystemError:      api.CodeInternal,
	jrpc2.NoError:          api.CodeInternal,
}

// own returns what an error of the library's is to be; nil: it is ours.
func own(text json.RawMessage) *api.Error {
	if text == nil {
		return nil
	}
	fault := api.ParseError(text)
	if fault.Data.Word != "" {
		return nil
	}
	if code, known := ownCodes[jrpc2.Code(fault.Code)]; known {
		fault.Code = code
	}
	return api.Failure(fault.Code, "docs/api.md says what a request looks like", "%s", fault.Message)
}
