package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Secrets returns the secrets that a run was started with. cloved writes their values into a pipe, of which the caller keeps
// both ends: this process reads those alone that the agent is to read, which are asked for by plain.
func (s *Share) Secrets(ctx context.Context, run agent.ID, plain bool, values *os.File) ([]api.Secret, error) {
	m, err := s.pass(ctx, methods.SecretOpen.Name, api.SecretOpenParams{Run: run, Plain: plain}, values)
	var result api.SecretOpenResult
	switch {
	case err == nil && m.Error != nil:
		err = api.ParseError(m.Error)
	case err == nil:
		err = json.Unmarshal(m.Result, &result)
	case errors.Is(err, io.EOF):
		err = rpc.ErrGone
	}
	return result.Secrets, lost(err)
}

// usePatience is how long a request that is to carry a secret waits for a cloved that is away.
const usePatience = 10 * time.Second

// UseSecret has cloved decide one request.
func (s *Share) UseSecret(ctx context.Context, use api.SecretUseParams) (api.SecretUseResult, error) {
	for until := time.Now().Add(usePatience); ; {
		result, err := Do(ctx, s.client, methods.SecretUse, use)
		if err == nil || !isAway(err) || time.Now().After(until) {
			return result, err
		}
		select {
		case <-time.After(attachAgain):
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
}
