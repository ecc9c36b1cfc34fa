package settings

import (
	"math"
	"strconv"
	"time"

	"clove.run/clove/agent"
)

// Live is how a setting is changed while the run lives. Rules are replaced as a whole, so the
// caller reads them together.
type Live struct {
	Usage, Default string                                   // in the help of update
	Read           func(text string, u *agent.Update) error // nil: a rule
}

// Below the floor a sandbox cannot even be entered.
func changeMemory(text string, u *agent.Update) error {
	return change(&u.MemoryBytes, func() (int64, error) { return ParseSize(Memory, text, agent.MemoryFloorBytes) })
}

// -1 is a value and no size: the parser of sizes does not take it.
func changeSwap(text string, u *agent.Update) error {
	return change(&u.MemorySwapBytes, func() (int64, error) {
		if text == "-1" {
			return -1, nil
		}
		return ParseSize(MemorySwap, text, agent.MemoryFloorBytes)
	})
}

func changeCPUs(text string, u *agent.Update) error {
	return change(&u.CPUs, func() (float64, error) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || n < agent.CPUsFloor || n > 1024 {
			return 0, Invalid(CPUs, "write a number such as 0.5", "%q is not a number of CPUs", text)
		}
		return n, nil
	})
}

func changePids(text string, u *agent.Update) error {
	return change(&u.Pids, func() (int64, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < agent.PidsFloor {
			return 0, Invalid(Pids, "write a whole number of at least "+strconv.Itoa(agent.PidsFloor), "%q is not a number of processes", text)
		}
		return n, nil
	})
}

// A timeout of 0 removes the limit, so it differs from one that is not given.
func changeTimeout(text string, u *agent.Update) error {
	return change(&u.WallClock, func() (time.Duration, error) { return ParseClock(Timeout, text) })
}

// change enters a number into an update. nil means no change.
func change[N any](to **N, read func() (N, error)) error {
	n, err := read()
	if err == nil {
		*to = &n
	}
	return err
}
