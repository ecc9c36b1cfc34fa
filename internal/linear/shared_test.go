package linear

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func operation(input, output any, call, answer int64) porcupine.Operation {
	return porcupine.Operation{Input: input, Output: output, Call: call, Return: answer}
}

type history struct {
	operations []porcupine.Operation
	fails      bool
}

func checked(t *testing.T, check func([]porcupine.Operation, time.Duration) error, histories map[string]history) {
	t.Helper()
	for name, h := range histories {
		if err := check(h.operations, time.Minute); (err != nil) != h.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message is received from its send to its ack, in order.
func TestBoxModel(t *testing.T) {
	t.Parallel()
	sent := func(id string, call, answer int64) porcupine.Operation {
		return operation(BoxInput{Op: BoxSend}, BoxOutput{IDs: []string{id}}, call, answer)
	}
	got := func(call int64, ids ...string) porcupine.Operation {
		return operation(BoxInput{Op: BoxReceive, Most: 2}, BoxOutput{IDs: ids}, call, call+1)
	}
	ack := func(id string, refused bool, call, answer int64) porcupine.Operation {
		return operation(BoxInput{Op: BoxAck, ID: id}, BoxOutput{Refused: refused}, call, answer)
	}
	checked(t, CheckBoxes, map[string]history{
		"in order":          {[]porcupine.Operation{sent("a", 0, 1), sent("b", 2, 3), sent("c", 4, 5), got(6, "a", "b"), ack("a", false, 8, 9), got(10, "b", "c")}, false},
		"beside each other": {[]porcupine.Operation{sent("b", 0, 3), sent("a", 0, 3), got(4, "a", "b")}, false},
		"out of order":      {[]porcupine.Operation{sent("a", 0, 1), sent("b", 2, 3), got(4, "b", "a")}, true},
		"lost":              {[]porcupine.Operation{sent("a", 0, 1), got(2)}, true},
		"before its send":   {[]porcupine.Operation{got(0, "a"), sent("a", 2, 3)}, true},
		"after its ack":     {[]porcupine.Operation{sent("a", 0, 1), ack("a", false, 2, 3), got(4, "a")}, true},
		"taken twice":       {[]porcupine.Operation{sent("a", 0, 1), ack("a", false, 2, 5), ack("a", false, 2, 5)}, true},
		"taken once":        {[]porcupine.Operation{sent("a", 0, 1), ack("a", true, 2, 5), ack("a", false, 2, 5)}, false},
	})
}

// Of two sets that name the same version one is refused, and a version never comes twice.
func TestKeyModel(t *testing.T) {
	t.Parallel()
	version := func(n uint64) *uint64 { return &n }
	set := func(on *uint64, value int64, refused bool, now uint64, call, answer int64) porcupine.Operation {
		return operation(KeyInput{Op: KeySet, If: on, Value: value}, KeyOutput{Refused: refused, Version: now}, call, answer)
	}
	get := func(now uint64, value, call int64) porcupine.Operation {
		return operation(KeyInput{Op: KeyGet}, KeyOutput{Version: now, Value: value}, call, call+1)
	}
	gone := func(was uint64, call int64) porcupine.Operation {
		return operation(KeyInput{Op: KeyDelete}, KeyOutput{Version: was}, call, call+1)
	}
	checked(t, CheckKeys, map[string]history{
		"one wins":           {[]porcupine.Operation{set(version(0), 1, false, 3, 0, 5), set(version(0), 2, true, 0, 0, 5), get(3, 1, 6)}, false},
		"both win":           {[]porcupine.Operation{set(version(0), 1, false, 3, 0, 5), set(version(0), 2, false, 4, 0, 5)}, true},
		"both lose":          {[]porcupine.Operation{set(version(0), 1, true, 0, 0, 5), set(version(0), 2, true, 0, 0, 5)}, true},
		"without a version":  {[]porcupine.Operation{set(nil, 1, false, 3, 0, 5), set(nil, 2, false, 4, 0, 5), get(4, 2, 6)}, false},
		"lost":               {[]porcupine.Operation{set(nil, 1, false, 3, 0, 1), get(0, 0, 2)}, true},
		"old":                {[]porcupine.Operation{set(nil, 1, false, 3, 0, 1), set(nil, 2, false, 4, 2, 3), get(3, 1, 4)}, true},
		"removed":            {[]porcupine.Operation{set(nil, 1, false, 3, 0, 1), gone(3, 2), get(0, 0, 4), set(version(0), 2, false, 4, 6, 7)}, false},
		"a version again":    {[]porcupine.Operation{set(nil, 1, false, 3, 0, 1), gone(3, 2), set(nil, 2, false, 3, 4, 5)}, true},
		"removed and there":  {[]porcupine.Operation{set(nil, 1, false, 3, 0, 1), gone(3, 2), get(3, 1, 4)}, true},
		"another is removed": {[]porcupine.Operation{set(nil, 1, false, 3, 0, 1), gone(2, 2)}, true},
	})
}

// A name has the runs that have registered it and not released it.
func TestNameModel(t *testing.T) {
	t.Parallel()
	do := func(op NameOp, by string, refused bool, call, answer int64, holders ...string) porcupine.Operation {
		return operation(NameInput{Op: op, By: by}, NameOutput{Refused: refused, Holders: holders}, call, answer)
	}
	checked(t, CheckNames, map[string]history{
		"two":           {[]porcupine.Operation{do(NameRegister, "b", false, 0, 1, "b"), do(NameRegister, "a", false, 2, 3, "b", "a"), do(NameRelease, "b", false, 4, 5), do(NameLookup, "b", false, 6, 7, "a")}, false},
		"twice":         {[]porcupine.Operation{do(NameRegister, "a", false, 0, 1, "a"), do(NameRegister, "a", false, 2, 3, "a"), do(NameRelease, "a", false, 4, 5), do(NameLookup, "a", true, 6, 7)}, false},
		"lost":          {[]porcupine.Operation{do(NameRegister, "a", false, 0, 1, "a"), do(NameLookup, "b", true, 2, 3)}, true},
		"kept":          {[]porcupine.Operation{do(NameRegister, "a", false, 0, 1, "a"), do(NameRelease, "a", false, 2, 3), do(NameLookup, "b", false, 4, 5, "a")}, true},
		"another's":     {[]porcupine.Operation{do(NameRegister, "a", false, 0, 1, "a"), do(NameRelease, "b", false, 2, 3)}, true},
		"beside it":     {[]porcupine.Operation{do(NameRegister, "a", false, 0, 5, "a", "b"), do(NameRegister, "b", false, 0, 5, "b")}, false},
		"neither first": {[]porcupine.Operation{do(NameRegister, "a", false, 0, 5, "a"), do(NameRegister, "b", false, 0, 5, "b")}, true},
	})
}

// A job has one holder at a time, is done once, and comes back when it is given back or its lease is over.
func TestJobModel(t *testing.T) {
	t.Parallel()
	const lease = 100 * time.Millisecond
	do := func(op JobOp, by string, call, answer time.Duration, said JobOutput) porcupine.Operation {
		call, answer = call*time.Millisecond, answer*time.Millisecond
		return operation(JobInput{Op: op, ID: "j", By: by, Lease: lease, Call: call, Return: answer}, said, int64(call), int64(answer))
	}
	add := do(JobAdd, "", 0, 1, JobOutput{})
	claim := func(by string, attempt int, call, answer time.Duration) porcupine.Operation {
		return do(JobClaim, by, call, answer, JobOutput{Attempts: attempt})
	}
	no := JobOutput{Refused: true}
	show := func(call time.Duration, said JobOutput) porcupine.Operation {
		return do(JobShow, "", call, call+1, said)
	}
	checked(t, CheckJobs, map[string]history{
		"done":               {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobComplete, "a", 4, 5, JobOutput{}), show(6, JobOutput{Attempts: 1, Done: true})}, false},
		"done twice":         {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobComplete, "a", 4, 9, JobOutput{}), do(JobComplete, "a", 4, 9, JobOutput{})}, true},
		"two hold it":        {[]porcupine.Operation{add, claim("a", 1, 2, 9), claim("b", 2, 2, 9)}, true},
		"another completes":  {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobComplete, "b", 4, 5, JobOutput{})}, true},
		"given back":         {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobFail, "a", 4, 5, JobOutput{}), claim("b", 2, 6, 7)}, false},
		"its lease is over":  {[]porcupine.Operation{add, claim("a", 1, 2, 3), claim("b", 2, 99, 110), do(JobComplete, "a", 111, 112, no)}, false},
		"its lease is not":   {[]porcupine.Operation{add, claim("a", 1, 2, 3), claim("b", 2, 50, 51)}, true},
		"refused too early":  {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobRenew, "a", 40, 50, no)}, true},
		"too late":           {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobComplete, "a", 150, 151, JobOutput{})}, true},
		"renewed":            {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobRenew, "a", 90, 91, JobOutput{}), do(JobComplete, "a", 150, 151, JobOutput{})}, false},
		"lost":               {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobComplete, "a", 4, 5, JobOutput{}), show(6, JobOutput{Attempts: 1})}, true},
		"a claim is lost":    {[]porcupine.Operation{add, claim("a", 1, 2, 3), show(6, JobOutput{})}, true},
		"after its end":      {[]porcupine.Operation{add, claim("a", 1, 2, 3), do(JobComplete, "a", 4, 5, JobOutput{}), claim("b", 2, 200, 201)}, true},
		"before its add":     {[]porcupine.Operation{claim("a", 1, 0, 1), do(JobAdd, "", 2, 3, JobOutput{})}, true},
		"held, and shown so": {[]porcupine.Operation{add, claim("a", 1, 2, 3), show(6, JobOutput{Attempts: 1, Holder: "a"})}, false},
		"held by another":    {[]porcupine.Operation{add, claim("a", 1, 2, 3), show(6, JobOutput{Attempts: 1, Holder: "b"})}, true},
	})
}
