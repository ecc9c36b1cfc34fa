//go:build root

package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/internal/linear"
	"clove.run/clove/internal/rpc"
)

// madeCall is one call of an agent's, with every repetition that it took until it was
// answered. The times are of CLOCK_MONOTONIC, which no sandbox changes.
type madeCall struct {
	Caller       int
	Call, Return int64
	Method       string
	Amount       int64 // that was used
	Sure         int64 // of Amount, what had been reserved: the accounts above count it in full
	Repeated     int   // because cloved was away

	// One of the pairs is set, or none: the call belongs to no history.
	Budget      *linear.BudgetInput `json:",omitempty"`
	BudgetSaid  linear.BudgetOutput `json:",omitzero"`
	Grant       *linear.GrantInput  `json:",omitempty"`
	GrantAnswer linear.GrantOutput  `json:",omitzero"`
	Box         *linear.BoxInput    `json:",omitempty"`
	BoxSaid     linear.BoxOutput    `json:",omitzero"`
	Key         *linear.KeyInput    `json:",omitempty"`
	KeySaid     linear.KeyOutput    `json:",omitzero"`
	Name        *linear.NameInput   `json:",omitempty"`
	NameSaid    linear.NameOutput   `json:",omitzero"`
	Job         *linear.JobInput    `json:",omitempty"`
	JobSaid     linear.JobOutput    `json:",omitzero"`
}

// refused reports whether the answer was that it cannot be.
func (m madeCall) refused() bool {
	return m.BudgetSaid.Refused || m.GrantAnswer.Refused || m.BoxSaid.Refused || m.KeySaid.Refused || m.NameSaid.Refused || m.JobSaid.Refused
}

// callInRounds makes calls on many connections at once. For each line of its input, a word
// for the keys and a seed, it makes a number of calls on each, and prints them and "done":
// rounds ACCOUNT CALLERS STEPS GRANTED NAME AGENT..., its own name and those of all in the order of their
// accounts.
func callInRounds(args []string) error {
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[i]); err != nil {
			return err
		}
	}
	shared := &derivedGrants{}
	var callers []*caller
	for i := range n[1] {
		c := &caller{number: n[0]*n[1] + i, account: n[0], granted: int64(n[3]), shared: shared, name: args[4], agents: args[5:]}
		var err error
		if c.conn, err = ownSocket(); err != nil {
			return err
		}
		callers = append(callers, c)
	}
	if err := callers[0].list(); err != nil { // it finds the first grant
		return err
	}
	fmt.Println("up")
	rounds := bufio.NewScanner(os.Stdin)
	for rounds.Scan() {
		if rounds.Text() == strconv.Quote(lastQueue) {
			c := callers[0]
			c.done, c.jobs = nil, nil
			if err := errors.Join(c.claimJob(lastQueue), printCalls(c)); err != nil {
				return err
			}
			continue
		}
		var word string
		var seed uint64
		if _, err := fmt.Sscan(rounds.Text(), &word, &seed); err != nil {
			return err
		}
		if err := round(callers, word, seed, n[2]); err != nil {
			return err
		}
	}
	return rounds.Err()
}

// round prints what the callers did.
func round(callers []*caller, word string, seed uint64, steps int) error {
	var all sync.WaitGroup
	failed := make([]error, len(callers))
	callers[0].shared.forget()
	for _, c := range callers {
		c.word, c.dice, c.made, c.seen, c.jobs, c.done = word, rand.New(rand.NewPCG(seed, uint64(c.number))), 0, nil, nil, nil
	}
	if err := callers[0].emptyBox(); err != nil {
		return err
	}
	for i, c := range callers {
		all.Go(func() { failed[i] = c.work(steps) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return printCalls(callers...)
}

// printCalls prints the calls that callers have made.
func printCalls(callers ...*caller) error {
	out := bufio.NewWriter(os.Stdout)
	for _, c := range callers {
		for _, made := range c.done {
			if err := json.NewEncoder(out).Encode(made); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(out, "done")
	return out.Flush()
}

// caller makes one call after the other.
type caller struct {
	number, account int
	granted         int64
	conn            *lineConn
	shared          *derivedGrants
	name            string   // of its run
	agents          []string // the names of all

	// Of a round:
	word string
	dice *rand.Rand
	made int // calls that change something
	open []openReservation
	seen []string // messages
	jobs []string // that it has claimed or added
	done []madeCall
}

type openReservation struct {
	id     string
	amount int64
}

// derivedGrants are the ids that the callers of an agent know; any of them may be revoked.
type derivedGrants struct {
	mu    sync.Mutex // guards the following
	first string     // what the agent was given
	ids   []string
}

// maxDerived keeps a caller's grants few enough for one answer of grant.list to have all.
const maxDerived = 3

// work makes calls, and settles what it has reserved.
func (c *caller) work(steps int) error {
	derived := 0
	for range steps {
		var err error
		switch roll := c.dice.IntN(34); {
		case roll < 2:
			err = c.show()
		case roll < 4 && len(c.open) > 0:
			err = c.settle()
		case roll < 5:
			err = c.charge()
		case roll < 8:
			err = c.reserve()
		case roll < 10 && derived < maxDerived:
			derived++
			err = c.derive()
		case roll < 11:
			err = c.revoke()
		case roll < 12:
			err = c.list()
		case roll < 14:
			err = c.send()
		case roll < 16:
			err = c.receive()
		case roll < 18:
			err = c.ack()
		case roll < 20:
			err = c.ackThen()
		case roll < 21:
			err = c.getKey()
		case roll < 23:
			err = c.changeKey()
		case roll < 26:
			err = c.useName()
		case roll < 28:
			err = c.addJob()
		case roll < 31:
			err = c.claimJob(c.word)
		default:
			err = c.workOn()
		}
		if err != nil {
			return err
		}
	}
	for len(c.open) > 0 {
		if err := c.settle(); err != nil {
			return err
		}
	}
	return nil
}

// amounts is of the one dimension.
func amounts(n int64) map[string]int64 { return map[string]int64{"n": n} }

// ofN is the first line of that dimension.
func ofN(lines []api.Budget) (line api.Budget) {
	if at := slices.IndexFunc(lines, func(b api.Budget) bool { return b.Dimension == "n" }); at >= 0 {
		line = lines[at]
	}
	return line
}

func (c *caller) budget(op linear.BudgetOp, amount, reserved int64) madeCall {
	return madeCall{Caller: c.number, Budget: &linear.BudgetInput{Op: op, Account: c.account, Granted: c.granted, Amount: amount, Held: reserved}}
}

func (c *caller) show() error {
	made := c.budget(linear.BudgetShow, 0, 0)
	var result api.BudgetResult
	if err := c.ask(&made, agents.BudgetGet.Name, map[string]any{}, &result); err != nil {
		return err
	}
	own := ofN(result.Budgets) // the run's own account comes first
	made.BudgetSaid.Used, made.BudgetSaid.Reserved = own.Used, own.Reserved
	c.done = append(c.done, made)
	return nil
}

func (c *caller) reserve() error {
	amount := c.dice.Int64N(8) + 1
	made := c.budget(linear.BudgetReserve, amount, 0)
	var result api.BudgetReserveResult
	err := c.change(&made, agents.BudgetReserve.Name, map[string]any{"amounts": amounts(amount)}, &result)
	if made.BudgetSaid.Refused = isRefusal(err, api.CodeBudget); err != nil && !made.BudgetSaid.Refused {
		return err
	}
	if err == nil {
		c.open = append(c.open, openReservation{result.Reservation, amount})
	}
	c.done = append(c.done, made)
	return nil
}

// settle settles the oldest reservation, also with more than was reserved.
func (c *caller) settle() error {
	r := c.open[0]
	c.open = c.open[1:]
	actual := c.dice.Int64N(r.amount + 2)
	made := c.budget(linear.BudgetSettle, actual, r.amount)
	made.Amount, made.Sure = actual, min(actual, r.amount)
	err := c.change(&made, agents.BudgetSettle.Name, map[string]any{"reservation": r.id, "amounts": amounts(actual)}, nil)
	c.done = append(c.done, made)
	return err
}

func (c *caller) charge() error {
	made := c.budget(linear.BudgetCharge, 1, 0)
	made.Amount = 1
	err := c.change(&made, agents.BudgetCharge.Name, map[string]any{"amounts": amounts(1)}, nil)
	c.done = append(c.done, made)
	return err
}

// derive narrows the first grant, or one that a caller has derived.
func (c *caller) derive() error {
	made := madeCall{Caller: c.number, Grant: &linear.GrantInput{Op: linear.GrantDerive, Holder: c.account, From: c.shared.pick(c.dice)}}
	from := made.Grant.From
	if from == "" {
		from = c.shared.original()
	}
	var result api.GrantResult
	err := c.change(&made, agents.GrantDerive.Name, map[string]any{"from": from, "grant": "tool:fetch"}, &result)
	if made.GrantAnswer.Refused = isRefusal(err, api.CodeNotFound); err != nil && !made.GrantAnswer.Refused {
		return err
	}
	if err == nil {
		made.GrantAnswer.IDs = []string{result.Grant.ID}
		c.shared.add(result.Grant.ID)
	}
	c.done = append(c.done, made)
	return nil
}

// revoke revokes one that a caller has derived, and may have revoked.
func (c *caller) revoke() error {
	id := c.shared.pick(c.dice)
	if id == "" {
		return c.list()
	}
	made := madeCall{Caller: c.number, Grant: &linear.GrantInput{Op: linear.GrantRevoke, Holder: c.account, From: id}}
	var result api.GrantRevokeResult
	err := c.change(&made, agents.GrantRevoke.Name, map[string]any{"id": id}, &result)
	if made.GrantAnswer.Refused = isRefusal(err, api.CodeNotFound); err != nil && !made.GrantAnswer.Refused {
		return err
	}
	made.GrantAnswer.IDs = result.Revoked
	c.done = append(c.done, made)
	return nil
}

func (c *caller) list() error {
	made := madeCall{Caller: c.number, Grant: &linear.GrantInput{Op: linear.GrantShow, Holder: c.account}}
	var result api.GrantListResult
	if err := c.ask(&made, agents.GrantList.Name, map[string]any{}, &result); err != nil {
		return err
	}
	for _, g := range result.Grants {
		switch {
		case g.Parent != "":
			made.GrantAnswer.IDs = append(made.GrantAnswer.IDs, g.ID)
		case g.Grant == "tool:fetch":
			c.shared.begin(g.ID)
		}
	}
	c.done = append(c.done, made)
	return nil
}

// pick returns an id that a caller has derived, or nothing.
func (d *derivedGrants) pick(dice *rand.Rand) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := dice.IntN(2*len(d.ids) + 1); at < len(d.ids) {
		return d.ids[at]
	}
	return ""
}

// original returns the grant that begin has named.
func (d *derivedGrants) original() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.first
}

func (d *derivedGrants) add(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids = append(d.ids, id)
}

// forget begins a round: the grants that were derived before are revoked.
func (d *derivedGrants) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids = nil
}

func (d *derivedGrants) begin(first string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = first
}

// change is ask with a key of the call's own. Some calls are repeated although they were
// answered, as by a caller that lost the answer: the second answer must be the first.
func (c *caller) change(made *madeCall, method string, params map[string]any, result any) error {
	c.made++
	params["key"] = fmt.Sprintf("%s.%d.%d", c.word, c.number, c.made)
	var first, second json.RawMessage
	err := c.ask(made, method, params, &first)
	if err != nil {
		return err
	}
	if c.dice.IntN(8) == 0 {
		repetition := *made
		if err := c.ask(&repetition, method, params, &second); err != nil || !bytes.Equal(first, second) {
			return fmt.Errorf("%s %v was answered with %s, and again with %s, %w", method, params, first, second, err)
		}
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(first, result)
}

// ask makes a call again and again while cloved is away, and notes the times.
func (c *caller) ask(made *madeCall, method string, params map[string]any, result any) error {
	made.Method = method
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	for made.Call = monotonic(); ; made.Repeated++ {
		m, err := c.conn.exchange(method, text)
		made.Return = monotonic()
		switch {
		case err != nil:
			return fmt.Errorf("%s %s: %w", method, text, err)
		case len(m.Error) == 0:
			return json.Unmarshal(m.Result, result)
		case api.ParseError(m.Error).Code != api.CodeBusy:
			return fmt.Errorf("%s %s: %w", method, text, api.ParseError(m.Error))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// exchange sends a request and returns the answer.
func (c *lineConn) exchange(method string, params []byte) (m rpc.Message, err error) {
	if _, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params); err != nil {
		return m, err
	}
	line, err := c.answers.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}

func isRefusal(err error, code api.Code) bool {
	var answered *api.Error
	return errors.As(err, &answered) && answered.Code == code
}

func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every kernel has this clock
	}
	return now.Nano()
}
