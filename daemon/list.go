package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// How much text of runs one answer to run.list has, in bytes, unless its first run alone
// has more. pageBytes fits, with the reasons, into what the ledger sets aside for an
// answer, so that no more has to be asked for when the list is made. Root, whose bound is
// higher, gets larger parts. usualText estimates a brief run for the first allocation.
const (
	pageBytes     = answerReserve - 4<<10
	rootPageBytes = 1 << 20
	usualText     = 512
)

// list gives the runs that are newest behind the place that p.After names.
func (r runs) list(c *request, p api.ListParams) (later, error) {
	from, err := parsePlace(p.After)
	if err != nil {
		return later{}, err
	}
	if p.Limit < 0 {
		return later{}, api.Failure(api.CodeParams, "omit it for as many as one answer holds", "limit: %d is no number of runs", p.Limit)
	}
	return later{make: func() (any, error) { return r.page(c, p, from) }}, nil
}

// page is an api.ListResult. It is put together from texts, of which brief ones are
// kept: every caller asks for it, and nothing else is as long.
func (r runs) page(c *request, p api.ListParams, from listPosition) (json.RawMessage, error) {
	if err := r.cache.refresh(); err != nil {
		return nil, err
	}
	runs := r.cache.list(func(run *agent.Run) bool {
		return c.peer.sees(run) && (p.All || run.State != agent.StateEnded) && from.before(run)
	})
	most := pageBytes
	if c.peer.root() {
		most = rootPageBytes
	}
	usual := min(most, usualText*(len(runs)+1))
	if !p.Brief {
		usual = min(most, pageBytes) // longer texts: growing would cost more than the page
	}
	list := append(make([]byte, 0, usual), `{"runs":[`...)
	reasons := map[agent.ID]string{}
	next := ""
	for i, run := range runs {
		text, err := r.cache.text(run, p.Brief)
		if err != nil {
			return nil, err
		}
		// The first run always goes, or a caller could not get past a very long one.
		if i > 0 && (len(list)+len(text) > most || i == p.Limit) {
			next = positionOf(runs[i-1]).String()
			break
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, text...)
		if reason := r.waitsFor(run); reason != "" || run.State == agent.StateQueued {
			reasons[run.Spec.ID] = reason
		}
	}
	// The fields behind the runs, without their opening bracket.
	rest, err := json.Marshal(struct {
		Reasons map[agent.ID]string `json:"reasons,omitempty"`
		Next    string              `json:"next,omitempty"`
	}{reasons, next})
	if err != nil {
		return nil, err
	}
	list = append(list, ']')
	if len(rest) > len("{}") {
		list = append(list, ',')
	}
	return append(list, rest[1:]...), nil
}

// listPosition is one in the list of all runs, which is the same at each request: a run's
// time and id never change, and a new one comes before all others.
type listPosition struct {
	created time.Time // zero: before the first
	id      agent.ID
}

func positionOf(run *agent.Run) listPosition { return listPosition{run.Created, run.Spec.ID} }

// before reports whether the run is listed after the place.
func (p listPosition) before(run *agent.Run) bool {
	return p.created.IsZero() || cmp.Or(p.created.Compare(run.Created), strings.Compare(string(run.Spec.ID), string(p.id))) > 0
}

func (p listPosition) String() string { return fmt.Sprintf("%d-%s", p.created.UnixNano(), p.id) }

// parsePlace reads what String wrote; empty is before the first.
func parsePlace(text string) (listPosition, error) {
	if text == "" {
		return listPosition{}, nil
	}
	at, id, found := strings.Cut(text, "-")
	nanoseconds, err := strconv.ParseInt(at, 10, 64)
	if !found || err != nil || !agent.ID(id).Valid() {
		return listPosition{}, api.Failure(api.CodeParams, "give what next was in the answer before", "after: %.64q is no place in the list", text)
	}
	return listPosition{time.Unix(0, nanoseconds), agent.ID(id)}, nil
}
