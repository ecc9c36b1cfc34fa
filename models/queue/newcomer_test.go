package queue

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever the calls before it were, and whatever comes behind it: an agent's first call is
// served behind at most one waiting call of each other agent.
func TestANewcomerWaitsForOneCallOfEachOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := New(Limits{Concurrency: int64(rapid.IntRange(1, 3).Draw(t, "places")), TokensPerMinute: int64(rapid.SampledFrom([]int{0, 1000}).Draw(t, "tokens"))})
		var running []*Call
		now, before := start, map[*Call]map[string]int{} // by newcomer: what was served before it
		newcomers := 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, int(10*time.Second)).Draw(t, "time")))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				q.Enter(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "agent")), int64(rapid.IntRange(1, 1000).Draw(t, "size")), 1)
			case 1:
				newcomers++
				before[q.Enter(fmt.Sprint("new", newcomers), int64(rapid.IntRange(1, 1000).Draw(t, "size")), 1)] = map[string]int{}
			case 2:
				c, _ := q.Next(now)
				if c == nil {
					break
				}
				running = append(running, c)
				delete(before, c)
				for _, served := range before {
					if served[c.agent]++; served[c.agent] > 1 {
						t.Fatalf("agent %s had a second call served before a newcomer's", c.agent)
					}
				}
			case 3:
				if len(running) > 0 {
					q.Leave(running[0])
					running = running[1:]
				}
			}
		}
	})
}
