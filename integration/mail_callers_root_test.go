//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/internal/linear"
)

const (
	// receivedAtOnce is how many messages a caller receives at most.
	receivedAtOnce = 4
	keysInRound    = 3
	namesInRound   = 2
)

// keyOf is a key that the callers of all agents change in a round.
func keyOf(round, n int) string { return fmt.Sprintf("c%d/%d", round, n) }

// emptyBox takes what earlier rounds have left out of the mailbox. Other agents may send in this round already.
func (c *caller) emptyBox() error {
	for {
		made := madeCall{Caller: c.number}
		received, err := c.waiting(&made, 64)
		var old []string
		for _, m := range received {
			if string(m.Body) != `"`+c.word+`"` {
				old = append(old, m.ID)
			}
		}
		if err != nil || len(old) == 0 {
			return err
		}
		if err := c.change(&made, agents.MailAck.Name, map[string]any{"ids": old}, nil); err != nil {
			return err
		}
		c.done = append(c.done, made)
	}
}

// waiting receives messages; an empty mailbox has none.
func (c *caller) waiting(made *madeCall, most int) ([]api.Mail, error) {
	var result api.MailReceiveResult
	err := c.ask(made, agents.MailReceive.Name, map[string]any{"most": most, "within_ms": 1}, &result)
	if isRefusal(err, api.CodeNotFound) {
		err = nil
	}
	return result.Messages, err
}

func (c *caller) box(op linear.BoxOp, box int) madeCall {
	return madeCall{Caller: c.number, Box: &linear.BoxInput{Op: op, Box: box, Most: receivedAtOnce}}
}

func (c *caller) send() error {
	to := c.dice.IntN(len(c.agents))
	made := c.box(linear.BoxSend, to)
	var result api.MailSendResult
	if err := c.change(&made, agents.MailSend.Name, map[string]any{"to": c.agents[to], "body": c.word}, &result); err != nil {
		return err
	}
	made.BoxSaid.IDs = []string{result.ID}
	c.done = append(c.done, made)
	return nil
}

func (c *caller) receive() error {
	made := c.box(linear.BoxReceive, c.account)
	messages, err := c.waiting(&made, receivedAtOnce)
	for _, m := range messages {
		made.BoxSaid.IDs = append(made.BoxSaid.IDs, m.ID)
	}
	c.seen = append(c.seen, made.BoxSaid.IDs...)
	c.done = append(c.done, made)
	return err
}

// ack takes a message out that was received, which another caller of the agent may have done.
func (c *caller) ack() error {
	if len(c.seen) == 0 {
		return c.receive()
	}
	made := c.box(linear.BoxAck, c.account)
	made.Box.ID = c.seen[c.dice.IntN(len(c.seen))]
	err := c.change(&made, agents.MailAck.Name, map[string]any{"ids": []string{made.Box.ID}}, nil)
	if made.BoxSaid.Refused = isRefusal(err, api.CodeNotFound); err != nil && !made.BoxSaid.Refused {
		return err
	}
	c.done = append(c.done, made)
	return nil
}

// ackThen takes a message out, charges one for it and sends the next, all in one call. What the carried calls
// have done belongs to the histories of their own: it is there once if the call was acknowledged, and not at
// all if it was refused, however often it was repeated.
func (c *caller) ackThen() error {
	if len(c.seen) == 0 {
		return c.receive()
	}
	made, to := c.box(linear.BoxAck, c.account), c.dice.IntN(len(c.agents))
	made.Box.ID = c.seen[c.dice.IntN(len(c.seen))]
	var result api.MailAckResult
	err := c.change(&made, agents.MailAck.Name, map[string]any{"ids": []string{made.Box.ID}, "then": c.accounting(to)}, &result)
	if made.BoxSaid.Refused = isRefusal(err, api.CodeNotFound); err != nil && !made.BoxSaid.Refused {
		return err
	}
	c.done = append(c.done, made)
	if made.BoxSaid.Refused {
		return nil
	}
	return c.keepCarried(made, result.Results, to)
}

// accounting are the calls that another carries: one is charged, and a message is sent.
func (c *caller) accounting(to int) []map[string]any {
	return []map[string]any{
		{"method": agents.BudgetCharge.Name, "params": map[string]any{"amounts": amounts(1)}},
		{"method": agents.MailSend.Name, "params": map[string]any{"to": c.agents[to], "body": c.word}},
	}
}

// keepCarried keeps the calls of accounting, which were made with another.
func (c *caller) keepCarried(made madeCall, results []json.RawMessage, to int) error {
	charged, sent := c.budget(linear.BudgetCharge, 1, 0), c.box(linear.BoxSend, to)
	charged.Method, charged.Amount = agents.BudgetCharge.Name, 1
	sent.Method = agents.MailSend.Name
	var next api.MailSendResult
	if err := json.Unmarshal(results[1], &next); err != nil {
		return err
	}
	sent.BoxSaid.IDs = []string{next.ID}
	for _, carried := range []madeCall{charged, sent} {
		carried.Call, carried.Return = made.Call, made.Return
		c.done = append(c.done, carried)
	}
	return nil
}

func (c *caller) key(op linear.KeyOp) (made madeCall, params map[string]any) {
	n := c.dice.IntN(keysInRound)
	return madeCall{Caller: c.number, Key: &linear.KeyInput{Op: op, Key: n}}, map[string]any{"scope": "namespace", "path": fmt.Sprintf("%s/%d", c.word, n)}
}

func (c *caller) getKey() error {
	made, params := c.key(linear.KeyGet)
	_, err := c.readKey(&made, params)
	c.done = append(c.done, made)
	return err
}

func (c *caller) readKey(made *madeCall, params map[string]any) (version uint64, err error) {
	var result api.StateResult
	if err := c.ask(made, agents.StateGet.Name, params, &result); err != nil {
		return 0, err
	}
	made.KeySaid.Version = result.Version
	if result.Version > 0 {
		err = json.Unmarshal(result.Value, &made.KeySaid.Value)
	}
	return result.Version, err
}

// changeKey sets or removes a key, mostly if it has the version that it had a moment ago.
func (c *caller) changeKey() error {
	made, params := c.key(linear.KeySet)
	method := agents.StateSet.Name
	if c.dice.IntN(4) == 0 {
		made.Key.Op, method = linear.KeyDelete, agents.StateDelete.Name
	}
	if c.dice.IntN(4) > 0 {
		before := madeCall{Caller: c.number, Key: &linear.KeyInput{Op: linear.KeyGet, Key: made.Key.Key}}
		version, err := c.readKey(&before, params)
		if err != nil {
			return err
		}
		c.done = append(c.done, before)
		made.Key.If, params["if_version"] = &version, version
	}
	if made.Key.Op == linear.KeySet {
		made.Key.Value = int64(c.number)<<32 + int64(c.made)
		params["value"] = made.Key.Value
	}
	var result api.StateSetResult
	err := c.change(&made, method, params, &result)
	if made.KeySaid.Refused = isRefusal(err, api.CodeConflict); err != nil && !made.KeySaid.Refused {
		return err
	}
	made.KeySaid.Version = result.Version
	c.done = append(c.done, made)
	return nil
}

// useName registers a name, releases it or looks it up.
func (c *caller) useName() error {
	n := c.dice.IntN(namesInRound)
	op := []linear.NameOp{linear.NameRegister, linear.NameRelease, linear.NameLookup}[c.dice.IntN(3)]
	made := madeCall{Caller: c.number, Name: &linear.NameInput{Op: op, Name: n, By: c.name}}
	params := map[string]any{"name": fmt.Sprintf("shared-%s-%d", c.word, n)}
	var result api.NameResult
	var err error
	switch op {
	case linear.NameRegister:
		err = c.change(&made, agents.NameRegister.Name, params, &result)
	case linear.NameRelease:
		err = c.change(&made, agents.NameRelease.Name, params, nil)
	case linear.NameLookup:
		err = c.ask(&made, agents.NameLookup.Name, params, &result)
	}
	if made.NameSaid.Refused = isRefusal(err, api.CodeNotFound); err != nil && !made.NameSaid.Refused {
		return err
	}
	for _, h := range result.Name.Holders {
		made.NameSaid.Holders = append(made.NameSaid.Holders, h.Name)
	}
	slices.SortFunc(made.NameSaid.Holders, strings.Compare)
	c.done = append(c.done, made)
	return nil
}
