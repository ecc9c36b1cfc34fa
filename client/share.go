package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/internal/rpc"
)

// Share is a supervisor's way to what agents share, which cloved answers for. It is a
// runtime.Kernel.
type Share struct {
	client   *Client
	patience time.Duration // of Attach, while cloved is away
}

// NewShare uses the cloved of a client.
func NewShare(c *Client) *Share { return &Share{client: c, patience: attachPatience} }

// attachPatience is how long a start waits for a cloved that is killed meanwhile and comes back. It is below the
// bound on a start's step without progress (agent.Spec.StartBound).
const attachPatience = 10 * time.Second

// isAway reports whether an attempt has met no cloved, or one that ended.
func isAway(err error) bool {
	return errors.As(err, new(absent)) || rpc.IsGone(err) || errors.Is(err, io.ErrUnexpectedEOF) || api.ErrorOf(err).Code == api.CodeDraining
}

// attachAgain is between two attempts while cloved is away.
const attachAgain = 100 * time.Millisecond

// Attach makes the run ready, and calls changed with how it stands: once before it
// returns, after each change, and when cloved has been away.
func (s *Share) Attach(ctx context.Context, run agent.Run, changed func(api.Standing)) error {
	first := make(chan error, 1)
	go func() {
		begins, until := true, time.Now().Add(s.patience)
		for ctx.Err() == nil {
			err := s.attach(ctx, run.Spec.ID, begins, func(now api.Standing) {
				changed(now)
				if begins {
					begins = false
					first <- nil
				}
			})
			if begins && (!isAway(err) || time.Now().After(until)) {
				first <- err
				return
			}
			select {
			case <-time.After(attachAgain):
			case <-ctx.Done():
			}
		}
		if begins {
			first <- ctx.Err()
		}
	}()
	return <-first
}

func (s *Share) attach(ctx context.Context, run agent.ID, begins bool, changed func(api.Standing)) error {
	return s.client.Stream(ctx, methods.KernelAttach.Name, api.KernelParams{Run: run, Begins: begins}, nil, notes(func(n api.StandingNote) error {
		changed(n.Standing)
		return nil
	}))
}

// Serve has cloved answer the calls that come on calls, the supervisor's end of the channel to the run's
// gate. It returns when cloved has gone, when the gate has, or when ctx ends; the caller keeps the file.
func (s *Share) Serve(ctx context.Context, run agent.ID, calls *os.File) error {
	m, err := s.pass(ctx, methods.KernelServe.Name, api.KernelServeParams{Run: run}, calls) // until it ends
	switch {
	case err == nil && m.Error != nil:
		err = api.ParseError(m.Error)
	case errors.Is(err, io.EOF):
		err = rpc.ErrGone
	}
	return lost(err)
}

// pass begins a session in which cloved takes a descriptor, which the caller keeps, and returns what comes behind that.
func (s *Share) pass(ctx context.Context, method string, params any, file *os.File) (m rpc.Message, err error) {
	conn, err := s.client.connect(ctx)
	if err != nil {
		return m, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := request(ctx, conn, method, params); err != nil {
		return m, err
	}
	if m, err = conn.Receive(); err == nil && m.Method == api.NoteReady {
		if _, err = passfd.Send(conn.Conn.(*net.UnixConn), []byte{'\n'}, file); err == nil {
			m, err = conn.Receive()
		}
	}
	return m, err
}

// Call is one call in the name of the run's agent.
func (s *Share) Call(ctx context.Context, run agent.ID, method string, params json.RawMessage) (json.RawMessage, error) {
	return Do(ctx, s.client, methods.KernelCall, api.KernelCallParams{Run: run, Method: method, Params: params})
}

// Ask puts a question to people, again where cloved was away, and waits for the answer. An answer for one time is used
// up when it returns, but for one about a secret: the use itself does that.
func (s *Share) Ask(ctx context.Context, question api.ApprovalAskParams, shown func(api.Approval)) (api.Approval, error) {
	for {
		asked, err := Do(ctx, s.client, methods.ApprovalAsk, question)
		if err == nil && asked.Approval.State == api.ApprovalWaits {
			if shown != nil {
				shown(asked.Approval)
				shown = nil // once
			}
			asked, err = Do(ctx, s.client, methods.ApprovalGet, api.ApprovalGetParams{ID: asked.Approval.ID, Answered: true})
		}
		if err == nil && asked.Approval.State == api.ApprovalAllowed && asked.Approval.Once && question.Kind != api.ApproveSecret {
			asked, err = Do(ctx, s.client, methods.ApprovalUse, api.ApprovalUseParams{Run: question.Run, ID: asked.Approval.ID})
			if err != nil && api.ErrorOf(err).Code == api.CodeConflict { // it is used up: this is another connection
				continue
			}
		}
		if err == nil || !isAway(err) {
			return asked.Approval, err
		}
		if err := again(ctx); err != nil {
			return api.Approval{}, err
		}
	}
}

// again waits before the next attempt.
func again(ctx context.Context) error {
	select {
	case <-time.After(attachAgain):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Answer brings the answer of the run's --on-ask, again where cloved was away.
func (s *Share) Answer(ctx context.Context, answer api.ApprovalRespondParams) error {
	for {
		_, err := Do(ctx, s.client, methods.ApprovalRespond, answer)
		if err == nil || !isAway(err) {
			return err
		}
		if err := again(ctx); err != nil {
			return err
		}
	}
}

// Asked waits for the answer to a question that stands.
func (s *Share) Asked(ctx context.Context, id string, shown func(api.Approval)) (api.Approval, error) {
	found, err := s.question(ctx, api.ApprovalGetParams{ID: id})
	if err != nil || found.State != api.ApprovalWaits {
		return found, err
	}
	shown(found)
	return s.Answered(ctx, id)
}

// Answered waits until a question waits no more, also where cloved is away meanwhile.
func (s *Share) Answered(ctx context.Context, id string) (api.Approval, error) {
	return s.question(ctx, api.ApprovalGetParams{ID: id, Answered: true})
}

// question reads a question, again where cloved is away.
func (s *Share) question(ctx context.Context, p api.ApprovalGetParams) (api.Approval, error) {
	for {
		found, err := Do(ctx, s.client, methods.ApprovalGet, p)
		if err == nil || !isAway(err) {
			return found.Approval, err
		}
		if err := again(ctx); err != nil {
			return api.Approval{}, err
		}
	}
}

// Respond answers a question as this process's user.
func (s *Share) Respond(ctx context.Context, p api.ApprovalRespondParams) (api.Approval, error) {
	result, err := Do(ctx, s.client, methods.ApprovalRespond, p)
	return result.Approval, err
}

// Meter reports what the Linux kernel has counted of the run.
func (s *Share) Meter(ctx context.Context, run agent.ID, start int, totals map[string]int64) error {
	return s.client.Call(ctx, methods.KernelMeter.Name, api.KernelMeterParams{Run: run, Start: start, Totals: totals}, nil)
}
