package approvals

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Bounds of questions.
const (
	waitingMost = 32       // of a run
	rowsMost    = 512      // of a run, answered ones included: the oldest of these go first
	whatMost    = 8192     // bytes of what is asked
	changesMost = 32 << 10 // bytes of a list of changes
	detailMost  = 512      // bytes of what an event says of a question
	reasonMost  = 1024     // bytes of a person's reason
	inPart      = 32
	lasts       = time.Hour // a question waits so long, unless it says something else
	lastsMost   = 7 * 24 * time.Hour
)

// Row is a question.
type Row struct {
	api.Approval
	Call string `json:"call,omitempty"` // the engine's name of the agent's call that waits for it; empty: none does
	// Withdrawn says that the agent took the question back: it is not asked again.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Over says of a question about a budget that this has more since: the answer holds no more.
	Over bool `json:"over,omitempty"`
}

// The indexes of questions.
const (
	byID     = "approvals_by_id"
	byWait   = "approvals_waiting"        // of those that wait, by the run
	waitTerm = "approvals_waiting_in_all" // those that wait
	byCall   = "approvals_by_call"        // by the call
	byBudget = "approvals_by_budget"      // of those about a budget whose answer holds, by budgetTerm
	ofOwner  = "approvals_of_owner"       // the sum: how many wait
)

// Rows is the table of questions.
var Rows = store.Table[Row]{
	Bucket: "approvals", Noun: "approval", OfRun: true,
	Key: func(r *Row) string { return store.RunKey(r.Run, r.ID) },
	Sound: func(r *Row) error {
		if _, known := kinds[r.Kind]; !known {
			return errors.New("it is of no kind that there is")
		}
		if !r.Run.Valid() || r.ID == "" || r.Digest == "" || r.What == "" || r.Expires.IsZero() {
			return errors.New("it has no run, no question or no end")
		}
		return nil
	},
	Indexes: []store.Index[Row]{
		{Bucket: byID, Terms: func(r *Row) []string { return []string{r.ID} }},
		{Bucket: byWait, Terms: func(r *Row) []string { return r.whileWaiting(r.waitTerm()) }, Bound: store.Bound[Row]{Most: waitingMost, Error: func(r *Row) error {
			return api.Failure(api.CodeBusy, "wait for the answers", "%d questions of %s wait for people", waitingMost, r.Agent).By(service.StageApproval, "")
		}}},
		{Bucket: waitTerm, Terms: func(r *Row) []string { return r.whileWaiting(waitTerm) }},
		{Bucket: byCall, Terms: func(r *Row) []string {
			if r.Call == "" {
				return nil
			}
			return []string{r.Call}
		}},
		{Bucket: byBudget, Terms: func(r *Row) []string {
			if r.Budget == nil || r.Over || r.State == api.ApprovalAllowed || r.State == api.ApprovalGone && !r.Withdrawn {
				return nil
			}
			return []string{budgetTerm(r.Budget.Account, r.Budget.Dimension)}
		}},
	},
	Sums: []store.Sum[Row]{{Bucket: ofOwner, Of: func(r *Row) (string, []int) {
		if r.State != api.ApprovalWaits {
			return "", nil
		}
		return strconv.FormatUint(uint64(r.Owner), 10), []int{1}
	}}},
}

// waitTerm is the term of a waiting question among those of its run. Those about budgets are apart: connections that wait
// leave no question about a budget without a place.
func (r *Row) waitTerm() string { return waitTermOf(r.Run, r.Budget != nil) }

func waitTermOf(run agent.ID, budget bool) string {
	if budget {
		return string(run) + "/budget"
	}
	return string(run)
}

// Waiting returns the questions of a run that wait, those about connections first.
func Waiting(tx *store.KernelTx, run agent.ID) (all []*Row, err error) {
	for _, budget := range []bool{false, true} {
		some, serr := Rows.Indexed(tx, byWait, waitTermOf(run, budget))
		all, err = append(all, some...), cmp.Or(err, serr)
	}
	return all, err
}

// Counted is how many questions wait, by the owner of their runs.
func Counted(tx *store.KernelTx) (map[uint32]int, error) {
	sums, err := Rows.Summed(tx, ofOwner)
	all := map[uint32]int{}
	for owner, n := range sums {
		uid, perr := strconv.ParseUint(owner, 10, 32)
		if err = cmp.Or(err, perr); perr == nil && len(n) == 1 {
			all[uint32(uid)] = n[0]
		}
	}
	return all, err
}

func (r *Row) whileWaiting(term string) []string {
	if r.State != api.ApprovalWaits {
		return nil
	}
	return []string{term}
}

func topic(id string) service.Topic { return service.Topic("approval/" + id) }

// digest is that of what a person sees of a question.
func digest(a api.Approval) string {
	seen := api.Approval{ID: a.ID, Kind: a.Kind, Run: a.Run, Agent: a.Agent, Owner: a.Owner, Namespace: a.Namespace, What: a.What, Rule: a.Rule,
		Shown: a.Shown, Says: a.Says, Cost: a.Cost, Also: a.Also, Budget: a.Budget, Changes: a.Changes, Needed: a.Needed}
	text, _ := json.Marshal(seen) // its fields have texts and numbers only
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// same reports whether two questions of a run are equal. The agent's words about it do not count. Each call waits for
// an answer of its own.
func (r *Row) same(other *Row) bool {
	own := r.Call == other.Call || r.State == api.ApprovalDenied || r.State == api.ApprovalExpired
	return r.Kind == other.Kind && r.What == other.What && r.Rule == other.Rule && slices.Equal(r.Shown, other.Shown) && own
}

// holds reports whether an answer holds at a time, so that an equal question has it.
func (r *Row) holds(now time.Time) bool {
	switch r.State {
	case api.ApprovalWaits, api.ApprovalExpired:
		return true
	case api.ApprovalAllowed, api.ApprovalDenied:
		return r.Used.IsZero() && (r.Until.IsZero() || now.Before(r.Until))
	}
	return false
}

// find returns a question by its id; nil: there is none.
func find(tx *store.KernelTx, id string) (*Row, error) {
	if id == "" || len(id) > 64 {
		return nil, nil
	}
	all, err := Rows.Indexed(tx, byID, id)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// End ends the questions that a run, which has ended, has asked until a moment, zero: all. What waits for the answers looks at the topics.
func (a *Approvals) End(tx *store.KernelTx, run agent.ID, until time.Time, out *service.Outcome) error {
	all, err := Waiting(tx, run)
	for _, r := range all {
		if !until.IsZero() && r.Asked.After(until) {
			continue
		}
		r.State = api.ApprovalGone
		if perr := Rows.Put(tx, r); err == nil {
			err = perr
		}
		a.count(out, r, string(r.State))
		out.Topics = append(out.Topics, topic(r.ID))
	}
	return err
}
