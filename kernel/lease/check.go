package lease

import (
	"cmp"
	"encoding/json"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/store"
)

// traceMost bounds a trace, in bytes.
const traceMost = 64

// Check refuses what cannot be sent. Each of times is in milliseconds from now; 0: none.
func Check(m *Message, times ...int64) error {
	for _, ms := range times {
		if ms < 0 || time.Duration(ms) > agent.ClockCeiling/time.Millisecond {
			return api.Failure(api.CodeParams, "give a time above 0, or leave it out", "%d ms is no time from now", ms)
		}
	}
	switch {
	case m.Priority < 0 || m.Priority > PriorityMost:
		return api.Failure(api.CodeParams, "use 0 to 9", "%d is no priority", m.Priority)
	case len(m.Trace) > traceMost:
		return api.Failure(api.CodeParams, "use the trace of a message that came", "a trace has at most %d bytes", traceMost)
	}
	return CheckBody(m)
}

// CheckBody refuses a body that is no JSON or too long, and drops blanks. Beside a blob there may be none.
func CheckBody(m *Message) (err error) {
	m.Body, err = api.Body("a body", m.Body, m.Blob)
	return err
}

// CheckResult refuses a result of a job as CheckBody; nil is none.
func CheckResult(result *json.RawMessage) (err error) {
	if len(*result) == 0 || string(*result) == "null" {
		*result = nil
		return nil
	}
	if *result, err = api.Compacted("a result", *result); err == nil && len(*result) > api.JobResultMost {
		err = api.Failure(api.CodeTooLarge, "keep larger ones as blobs, with blob.open, and name those", "a result is JSON of at most %d bytes", api.JobResultMost)
	}
	return err
}

// Holdings are the references to blobs of all messages, dead letters and jobs, for blob.Check.
func Holdings(tx *store.KernelTx) (holdings []blob.Holding, err error) {
	boxes, err := Boxes.Below(tx, "")
	for _, b := range boxes {
		for _, table := range all {
			in, terr := table.Below(tx, b.ID()+"/")
			err = cmp.Or(err, terr)
			for _, m := range in {
				holdings = append(holdings, blob.Holding{Owner: b.Owner, Holder: m.Holder(), Blob: m.Blob}, blob.Holding{Owner: b.Owner, Holder: m.Holder(), Blob: m.result()})
			}
		}
	}
	return holdings, err
}
