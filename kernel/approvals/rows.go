package approvals

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Bounds of questions.
const (
	waitingMost = 32   // of a run
	rowsMost    = 512  // of a run, answered ones included: the oldest of these go first
	whatMost    = 8192 // bytes of what is asked
	reasonMost  = 1024 // bytes of a person's reason
	inPart      = 32
	lasts       = time.Hour // a question waits so long, unless it says something else
	lastsMost   = 7 * 24 * time.Hour
)

// Row is a question.
type Row struct{ api.Approval }

// The indexes of questions.
const (
	byID     = "approvals_by_id"
	byWait   = "approvals_waiting"        // of those that wait, by the run
	waitTerm = "approvals_waiting_in_all" // those that wait
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
		{Bucket: byWait, Terms: func(r *Row) []string { return r.whileWaiting(string(r.Run)) }, Bound: store.Bound[Row]{Most: waitingMost, Error: func(r *Row) error {
			return api.Failure(api.CodeBusy, "wait for the answers", "%d questions of %s wait for people", waitingMost, r.Agent).By(service.StageApproval, "")
		}}},
		{Bucket: waitTerm, Terms: func(r *Row) []string { return r.whileWaiting(waitTerm) }},
	},
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
	seen := api.Approval{ID: a.ID, Kind: a.Kind, Run: a.Run, Agent: a.Agent, Owner: a.Owner, Namespace: a.Namespace, What: a.What, Rule: a.Rule, Needed: a.Needed}
	text, _ := json.Marshal(seen) // its fields have texts and numbers only
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// same reports whether two questions of a run are equal.
func (r *Row) same(kind api.ApprovalKind, what, rule string) bool {
	return r.Kind == kind && r.What == what && r.Rule == rule
}

// holds reports whether an answer holds at a time, so that an equal question has it.
func (r *Row) holds(now time.Time) bool {
	switch r.State {
	case api.ApprovalWaits, api.ApprovalDenied, api.ApprovalExpired:
		return true
	case api.ApprovalAllowed:
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
func End(tx *store.KernelTx, run agent.ID, until time.Time) (topics []service.Topic, err error) {
	all, err := Rows.Indexed(tx, byWait, string(run))
	for _, r := range all {
		if !until.IsZero() && r.Asked.After(until) {
			continue
		}
		r.State = api.ApprovalGone
		if perr := Rows.Put(tx, r); err == nil {
			err = perr
		}
		topics = append(topics, topic(r.ID))
	}
	return topics, err
}
