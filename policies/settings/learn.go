package settings

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
)

// Learn is how a limit follows from what runs used.
type Learn struct {
	Entry string // NAME of the limit in a setting of NAME=TEXT; empty: the setting is the limit
	// Seen is the peak, -1 where it is not known, and the least that is learned: the need of an almost
	// empty program with a margin, because a margin of nothing is nothing.
	Seen  func(agent.Observed) (peak, floor int64)
	Round func(int64) int64 // up
	Unit  LearnUnit
}

// LearnUnit reads, writes and says a figure of an observation.
type LearnUnit struct {
	Read       func(text string) int64 // 0: no limit
	Write, Say func(int64) string
}

// The units of figures.
var (
	inBytes  = LearnUnit{readSize, bytes.write, bytes.say}
	inCounts = LearnUnit{readHard, counts.write, counts.say}
	inMillis = LearnUnit{readMillis, func(n int64) string { return writeClock(millis(n)) }, func(n int64) string { return millis(n).String() }}
)

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// used is a figure that no run has at 0.
func used(figure func(agent.ObservedPeaks) int64, floor int64) func(agent.Observed) (int64, int64) {
	return func(o agent.Observed) (int64, int64) { return orUnknown(figure(o.Peaks)), floor }
}

func orUnknown(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

const mebibyte = 1 << 20

func upTo(multiple int64) func(int64) int64 {
	return func(n int64) int64 { return (n + multiple - 1) / multiple * multiple }
}

// roundSize rounds up to three significant bits, and to whole MiB.
func roundSize(n int64) int64 {
	unit := max(int64(1)<<max(bits.Len64(uint64(n))-4, 0), mebibyte)
	return (n + unit - 1) / unit * unit
}

func readSize(text string) int64 {
	n, err := agent.ParseSize(text)
	if err != nil {
		return 0
	}
	return n
}

// readHard reads a number, or the hard limit of SOFT:HARD.
func readHard(text string) int64 {
	if _, hard, both := strings.Cut(text, ":"); both {
		text = hard
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func readMillis(text string) int64 {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d.Milliseconds()
}
