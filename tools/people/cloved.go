package people

import (
	"context"
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// Cloved is what the tools need of cloved, with the user's own rights. Over makes one of a client.
type Cloved interface {
	// Call and Stream are those of client.Client.
	Call(ctx context.Context, method string, params, result any) error
	Stream(ctx context.Context, method string, params, result any, note func(method string, params json.RawMessage) error) error
	// Exec runs a process in a run's sandbox, with input as its stdin. Its output comes in pieces. The end of
	// ctx ends it with all that it started.
	Exec(ctx context.Context, params api.ExecParams, input []byte, each func(api.SessionOutput) error) (api.ExecResult, error)
	// Hold joins a foreground run until it ends. The end of ctx ends the run.
	Hold(ctx context.Context, run string, each func(api.SessionOutput) error) (*agent.Record, error)
}

// Over is the cloved of a client.
func Over(c *client.Client) Cloved { return over{c} }

type over struct{ *client.Client }

// Exec writes the input beside the answer: a process may write before it has read all.
func (o over) Exec(ctx context.Context, params api.ExecParams, input []byte, each func(api.SessionOutput) error) (result api.ExecResult, err error) {
	params.Stdin = input != nil
	session, err := client.Open(ctx, o.Client, methods.RunExec, params)
	if err != nil {
		return result, err
	}
	defer session.Close()
	if input != nil {
		go func() {
			const piece = 32 << 10
			for len(input) > 0 {
				n := min(piece, len(input))
				if _, err := session.Write(input[:n]); err != nil {
					return // the answer says why
				}
				input = input[n:]
			}
			_ = session.CloseInput() // it may be over
		}()
	}
	err = session.Answer(ctx, &result, each)
	return result, err
}

// Hold gives the run no input.
func (o over) Hold(ctx context.Context, run string, each func(api.SessionOutput) error) (*agent.Record, error) {
	session, err := o.Foreground(ctx, api.AttachParams{RunParams: api.RunParams{Run: run}})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := session.CloseInput(); err != nil {
		return nil, err
	}
	var result api.AttachResult
	err = session.Answer(ctx, &result, each)
	return result.Record, err
}
