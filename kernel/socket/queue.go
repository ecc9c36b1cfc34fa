package socket

import (
	"encoding/json"
	"fmt"

	"clove.run/clove/kernel/channel"
)

// maxQueued is how many notifications wait for agent.listen. The oldest go first.
const maxQueued = 256

// noteLost says how many notifications went before the next one.
const noteLost = "agent.lost"

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
		all = append([]channel.Notice{{Method: noteLost, Params: json.RawMessage(fmt.Sprintf(`{"lost":%d}`, q.lost))}}, all...)
	}
	*q = queue{}
	return all
}
