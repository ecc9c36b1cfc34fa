package metrics

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api/methods"
)

// newMeter returns a meter whose gauges all have a value.
func newMeter() *Meter {
	return New("1.2.3", func() []Sample {
		var samples []Sample
		for _, row := range Table {
			if row.Kind == Gauge && row.Name != BuildInfo {
				s := Sample{Name: row.Name, Value: 1}
				for _, l := range row.Labels {
					s.Labels = append(s.Labels, append(l.Values, "one")[0])
				}
				samples = append(samples, s)
			}
		}
		return samples
	})
}

func text(t *testing.T, m *Meter) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wants checks that each line is there, unchanged.
func wants(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("there is no line %q", line)
		}
	}
}

// Each event of a run is counted once, with the status of its end, and durations are those
// between the events' times.
func TestHappened(t *testing.T) {
	t.Parallel()
	m := newMeter()
	at := time.Now()
	happen := func(after time.Duration, what agent.RunEventKind, status agent.Status, sum *agent.Sum) {
		at = at.Add(after)
		m.Happened(agent.RunEvent{Time: at, Kind: what, ID: "a", Status: status, Sum: sum})
	}
	happen(0, agent.RunQueued, "", nil)
	happen(2*time.Second, agent.RunStarting, "", nil)
	happen(40*time.Millisecond, agent.RunStarted, "", nil)
	happen(time.Hour, agent.RunEnded, agent.StatusOOM, &agent.Sum{Limit: agent.ControlMemory, PidsMax: 7, CPUMS: 1500, NetRxBytes: 10, NetTxBytes: 20, Connections: 3, Refused: 4})
	happen(0, agent.RunRequeued, "", nil)
	happen(time.Second, agent.RunLost, agent.StatusKilled, nil)
	happen(0, agent.RunGivenUp, "", nil)
	m.Happened(agent.RunEvent{Time: at, Kind: agent.RunEnded, ID: "b", Status: agent.StatusDiskFull, Sum: &agent.Sum{Limit: agent.LimitDiskFiles}})
	m.Happened(agent.RunEvent{Time: at, Kind: agent.RunEnded, ID: "c", Status: agent.StatusBudget, Sum: &agent.Sum{Limit: "reviews"}})
	m.Happened(agent.RunEvent{Time: at, Kind: agent.RunBudgetWarned, ID: "c"})
	wants(t, text(t, m), `clove_ends_total{status="budget"} 1`, `clove_limit_hits_total{limit="budget"} 1`, `clove_budget_marks_total{mark="budget-warned"} 1`, "clove_starts_total 1", `clove_ends_total{status="oom"} 1`, `clove_ends_total{status="killed"} 1`, `clove_ends_total{status="exited"} 0`,
		"clove_supervisors_lost_total 1", "clove_restarts_total 1", "clove_restart_give_ups_total 1",
		`clove_limit_hits_total{limit="memory"} 1`, `clove_limit_hits_total{limit="pids"} 1`, `clove_limit_hits_total{limit="disk"} 1`, `clove_limit_hits_total{limit="output"} 0`,
		"clove_forks_refused_total 7", "clove_cpu_seconds_total 1.5", "clove_network_denials_total 4", "clove_gate_receive_bytes_total 10",
		"clove_gate_transmit_bytes_total 20", "clove_gate_connections_total 3",
		`clove_start_seconds_bucket{le="0.025"} 0`, `clove_start_seconds_bucket{le="0.05"} 1`, "clove_start_seconds_count 1",
		"clove_queue_wait_seconds_count 1", "clove_queue_wait_seconds_sum 2")
	if len(m.since) != 0 {
		t.Errorf("it remembers %v", m.since)
	}
}

// A run whose beginning was not seen has no durations, and is counted all the same.
func TestHappenedInTheMiddle(t *testing.T) {
	t.Parallel()
	m := newMeter()
	m.Happened(agent.RunEvent{Time: time.Now(), Kind: agent.RunStarted, ID: "a"})
	wants(t, text(t, m), "clove_starts_total 1", "clove_start_seconds_count 0")
}

// A clock that was set back neither causes a panic nor lowers a counter.
func TestTimeGoesBack(t *testing.T) {
	t.Parallel()
	m := newMeter()
	at := time.Now()
	m.Happened(agent.RunEvent{Time: at, Kind: agent.RunStarting, ID: "a"})
	m.Happened(agent.RunEvent{Time: at.Add(-time.Hour), Kind: agent.RunStarted, ID: "a"})
	m.Happened(agent.RunEvent{Time: at, Kind: agent.RunEnded, ID: "a", Status: agent.StatusExited, Sum: &agent.Sum{CPUMS: -5}})
	wants(t, text(t, m), "clove_start_seconds_sum 0", "clove_start_seconds_count 1", "clove_cpu_seconds_total 0")
}

// Text that callers choose does not become a label, and calls whose duration the caller
// chooses are not timed.
func TestCalled(t *testing.T) {
	t.Parallel()
	m := newMeter()
	for i := range 3 {
		m.Called(fmt.Sprintf("made.up%d", i), "method", 0)
	}
	m.Called(methods.RunList.Name, Done, 3*time.Millisecond)
	m.Called(methods.EventFollow.Name, "cancelled", time.Hour)
	m.Called(methods.RunExec.Name, Done, time.Hour)
	got := text(t, m)
	wants(t, got, `clove_api_requests_total{code="method",method="unknown"} 3`, `clove_api_requests_total{code="ok",method="run.list"} 1`,
		`clove_api_requests_total{code="cancelled",method="event.follow"} 1`, `clove_api_request_seconds_count{method="run.list"} 1`)
	if strings.Contains(got, "made.up") || strings.Contains(got, `seconds_count{method="event.follow"}`) || strings.Contains(got, `seconds_count{method="run.exec"}`) {
		t.Error(got)
	}
}

func TestTheRest(t *testing.T) {
	t.Parallel()
	m := newMeter()
	m.Committed(4 * time.Millisecond)
	m.StoreFailed()
	m.Refused("busy")
	m.Dropped(5)
	m.Unseen(6)
	wants(t, text(t, m), `clove_store_commit_seconds_bucket{le="0.005"} 1`, "clove_store_errors_total 1", `clove_api_connections_refused_total{reason="busy"} 1`,
		"clove_event_notifications_dropped_total 5", "clove_occurrences_unseen_total 6", `clove_agents{state="queued"} 1`)
}
