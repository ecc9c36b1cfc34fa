package linear

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// JobOp is what a run does with a job.
type JobOp string

// The operations. Each is one step.
const (
	JobAdd      JobOp = "add"
	JobClaim    JobOp = "claim" // of whatever job the run was given
	JobRenew    JobOp = "renew"
	JobFail     JobOp = "fail" // gives it back
	JobComplete JobOp = "complete"
	JobShow     JobOp = "show" // what there is of it, without a run
)

// JobInput is an operation of the run By on one job. Call and Return are its times: a lease ends with time.
type JobInput struct {
	Op           JobOp
	ID, By       string
	Lease        time.Duration // of the queue
	Call, Return time.Duration
}

// JobOutput is the answer.
type JobOutput struct {
	Refused  bool   // the run does not hold it
	Attempts int    // of a claim and of a show
	Holder   string // of a show; empty: none
	Done     bool   // of a show
}

// JobSlack is by how much the clock of the leases may differ from that of the callers, from one end of a lease to the
// other.
const JobSlack = 30 * time.Millisecond

// jobState is the state of a job in the model.
type jobState struct {
	there, done bool
	holder      string
	attempts    int
	// The lease ends between these.
	earliest, latest time.Duration
}

// JobModel is the sequential specification of a job: from its add to its completion one run holds it at most, as long
// as its lease lasts or until it gives it back.
var JobModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (all [][]porcupine.Operation) {
		at := map[string]int{}
		for _, o := range history {
			id := o.Input.(JobInput).ID
			if _, known := at[id]; !known {
				at[id], all = len(all), append(all, nil)
			}
			all[at[id]] = append(all[at[id]], o)
		}
		return all
	},
	Init: func() any { return jobState{} },
	Step: func(state, input, output any) (bool, any) {
		next := state.(jobState)
		legal := next.apply(input.(JobInput), output.(JobOutput))
		return legal, next
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(JobInput), output.(JobOutput)
		return fmt.Sprintf("%s %s by %s: %+v", in.Op, in.ID, in.By, out)
	},
}

// apply reports whether the answer is correct in this state, and changes the state.
func (j *jobState) apply(in JobInput, out JobOutput) bool {
	mayBeFree := j.holder == "" || in.Return+JobSlack >= j.earliest
	switch {
	case in.Op == JobAdd:
		fresh := !j.there
		*j = jobState{there: true}
		return fresh && !out.Refused
	case !j.there:
		return false
	case in.Op == JobShow:
		return out.Done == j.done && out.Attempts == j.attempts && (j.done || out.Holder == j.holder || out.Holder == "" && mayBeFree)
	case in.Op == JobClaim:
		legal := !j.done && mayBeFree && out.Attempts == j.attempts+1
		j.attempts++
		j.holds(in)
		return legal
	case out.Refused:
		return j.done || j.holder != in.By || mayBeFree
	}
	legal := !j.done && j.holder == in.By && in.Call <= j.latest+JobSlack
	switch in.Op {
	case JobRenew:
		j.holds(in)
	case JobFail:
		j.holder = ""
	case JobComplete:
		j.holder, j.done = "", true
	default:
		return false
	}
	return legal
}

// holds begins a lease.
func (j *jobState) holds(in JobInput) {
	j.holder, j.earliest, j.latest = in.By, in.Call+in.Lease, in.Return+in.Lease
}
