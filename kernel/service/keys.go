package service

import (
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// kept is the answer to a call with a key.
type kept struct {
	Digest string          `json:"digest"` // of the call
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"` // of a call that people have refused
}

// maxKey bounds a key, in bytes.
const maxKey = 64

// keyOf returns the key of a call; empty: it has none.
func keyOf(params any) (string, error) {
	p, keyed := params.(interface{ CallKey() string })
	if !keyed {
		return "", nil
	}
	if len(p.CallKey()) > maxKey {
		return "", api.Failure(api.CodeParams, "", "a key has at most %d bytes", maxKey)
	}
	return p.CallKey(), nil
}

// keptBelow is where the answer to a call with a key is kept. Each caller has keys of its own:
// otherwise an agent could take the key with which its owner will revoke a grant.
func (c *Call) keptBelow() string {
	return audit.Digest([]byte(c.Principal() + " " + c.key))
}

// keeper is the run below which the answer is kept, of a call about no run the user.
func (c *Call) keeper() agent.ID {
	if c.AboutRun() {
		return c.Run.Spec.ID
	}
	return store.UserID(c.UID)
}

// keep keeps the answer to a call with a key, for its repetition.
func (c *Call) keep(answer kept) error {
	if c.key == "" {
		return nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	if c.Agent {
		return store.Answers.Put(c.Tx, c.Run.Spec.ID, c.keptBelow(), text)
	}
	return store.Answers.PutUsers(c.Tx, c.keeper(), c.keptBelow(), text)
}

// repeated returns the answer that an earlier call with this key got; nil: there was none.
func (c *Call) repeated() (json.RawMessage, error) {
	if c.key == "" {
		return nil, nil
	}
	text, err := store.Answers.Get(c.Tx, c.keeper(), c.keptBelow())
	if err != nil || text == nil {
		return nil, err
	}
	var first kept
	if err := json.Unmarshal(text, &first); err != nil {
		return nil, err
	}
	switch {
	case first.Digest != c.digest():
		return nil, otherCall(c.key)
	case first.Error != nil:
		c.out.Recorded = true // with the first call
		return nil, api.ParseError(first.Error)
	}
	return first.Result, nil
}

// begun notes durably that a call with a key begins, whose answer will not be kept. A repetition gets the error.
func begun(e *Engine, c *Call) error {
	err := e.update(c.Method, func(tx *store.KernelTx) error {
		c.again(tx, e.now())
		if _, err := c.repeated(); err != nil {
			return err
		}
		text, err := json.Marshal(api.Failure(api.CodeConflict, "look at what it did, and take another key to call again", "the call with the key %.64q has begun before, and its answer is not kept", c.key))
		if err != nil {
			return err
		}
		return c.keep(kept{Digest: c.digest(), Error: text})
	})
	c.Tx = nil
	return err
}

func otherCall(key string) error {
	return api.Failure(api.CodeConflict, "take another key for another call", "another call had the key %.64q", key)
}
