package api

import (
	"encoding/json"
	"slices"
)

// The notifications that an agent gets after agent.listen.
const (
	NoteBudgetWarning = "budget.warning" // BudgetNote
	NoteBudgetPause   = "budget.paused"  // BudgetNote
	NoteGrantsChanged = "grant.changed"  // GrantsNote: ask grant.list
	NoteOffer         = "agent.offer"    // OfferNote
	NoteAccepted      = "agent.accepted" // AcceptedNote
	NoteLost          = "agent.lost"     // LostNote
	NoteChildEnded    = "agent.ended"    // ChildNote
	NoteMail          = "mail.came"      // MailNote: ask mail.receive
)

// LostNote counts the notifications that were dropped before this one: too many waited.
type LostNote struct {
	Lost int `json:"lost"`
}

// Repeated is part of each notification for agents: of one kind and about the same, those that were
// not read become one.
type Repeated struct {
	Count int `json:"count,omitempty"` // of how many it is the last; absent: of one
}

// BudgetNote says that a dimension reached a mark.
type BudgetNote struct {
	Budget Budget `json:"budget"`
	Repeated
}

// GrantsNote says that the grants of the run are others now.
type GrantsNote struct{ Repeated }

// Notice is one notification for an agent.
type Notice struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Key    string          `json:"key,omitempty"`   // what it is about: those of one method and key that were not read become one
	Count  int             `json:"count,omitempty"` // of how many it is the last; absent: of one
}

// Joined returns notices with more behind them. Those of one method and key become one, in the place
// and with the parameters of the last, and with their count.
func Joined(all []Notice, more ...Notice) []Notice {
	for _, n := range more {
		same := func(o Notice) bool { return n.Key != "" && o.Method == n.Method && o.Key == n.Key }
		if at := slices.IndexFunc(all, same); at >= 0 {
			n.Count = max(1, n.Count) + max(1, all[at].Count)
			all = slices.Delete(slices.Clone(all), at, at+1)
		}
		all = append(all, n)
	}
	return all
}
