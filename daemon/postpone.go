package daemon

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// postponed is a start that failed and could not be noted: the run still waits
// in the store, and would be started again at once, for ever.
//
// It is in memory only: a cloved that begins anew tries each once, which is what
// a new cloved is for.
type postponed struct {
	until  time.Time // the next attempt, retryTime after the last
	reason string    // for who asks why it waits, with the failure in it
}

// postpone holds a run back if it still waits although its start failed, and
// tells whether it does. The reason is what those hear who ask.
func (k *reconciler) postpone(id agent.ID, failure *api.Error) bool {
	if k.cache.refresh() == nil {
		if run, found := k.cache.get(id); !found || run.State != agent.StateQueued {
			k.mu.Lock()
			delete(k.held, id)
			k.mu.Unlock()
			return false
		}
	}
	reason := "it could not be started, and is tried again"
	if failure != nil {
		reason += ": " + failure.Message
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[id] = postponed{time.Now().Add(k.retry), reason}
	return true
}

// holdBack gives those that are postponed a time to wait for. k.mu is held.
func (k *reconciler) holdBack(runs []agent.Run, now time.Time) {
	waiting := map[agent.ID]bool{}
	for i, run := range runs {
		if hold, held := k.held[run.Spec.ID]; held && run.State == agent.StateQueued {
			waiting[run.Spec.ID] = true
			if hold.until.After(now) && hold.until.After(run.Turn.NotBefore) {
				runs[i].Turn.NotBefore = hold.until
			}
		}
	}
	for id := range k.held {
		if !waiting[id] {
			delete(k.held, id)
		}
	}
}

// explainHeld says why the postponed wait, instead of until when. k.mu is held.
func (k *reconciler) explainHeld(reasons map[agent.ID]string) {
	for id, hold := range k.held {
		if _, waits := reasons[id]; waits {
			reasons[id] = hold.reason
		}
	}
}
