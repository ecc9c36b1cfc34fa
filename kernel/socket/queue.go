package socket

import (
	"encoding/json"

	"clove.run/clove/api"
	"clove.run/clove/kernel/channel"
)

// maxQueued is how many notifications wait for agent.listen. The oldest go first.
const maxQueued = 256

// queue holds notifications that no connection has read. Those of one method and key are one.
type queue struct {
	notices []api.Notice
	lost    int
}

func (q *queue) put(n channel.Notice) {
	q.notices = api.Joined(q.notices, n.Notice)
	if len(q.notices) > maxQueued {
		q.notices = q.notices[1:]
		q.lost++
	}
}

// take empties the queue. If some were lost, the first one says how many.
func (q *queue) take() []api.Notice {
	all := q.notices
	if q.lost > 0 {
		params, _ := json.Marshal(api.LostNote{Lost: q.lost}) // a number: it cannot fail
		all = append([]api.Notice{{Method: api.NoteLost, Params: params}}, all...)
	}
	*q = queue{}
	return all
}
