package socket

import (
	"encoding/json"

	"clove.run/clove/api"
	"clove.run/clove/kernel/channel"
)

// maxQueued is how many notifications wait for agent.listen. The oldest go first.
const maxQueued = 256

// queue holds notifications that nobody has read.
type queue struct {
	notices []channel.Notice
	lost    int
}

func (q *queue) put(n channel.Notice) {
	if len(q.notices) == maxQueued {
		q.notices = q.notices[1:]
		q.lost++
	}
	q.notices = append(q.notices, n)
}

// take empties the queue. If some were lost, the first one says how many.
func (q *queue) take() []channel.Notice {
	all := q.notices
	if q.lost > 0 {
		params, _ := json.Marshal(api.LostNote{Lost: q.lost}) // a number: it cannot fail
		all = append([]channel.Notice{{Method: api.NoteLost, Params: params}}, all...)
	}
	*q = queue{}
	return all
}
