package learn

import (
	"fmt"
	"math/bits"
	"strconv"
	"time"

	"github.com/docker/go-units"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// MarginPercent is what a limit has above the peak that was measured.
const MarginPercent = 50

// limit is one that is learned.
type limit struct {
	key   string // of the document
	peak  int64  // -1: not known, the runs' own limit stays
	floor int64
	given int64 // of the runs; 0: none
	round func(int64) int64
	write func(int64) policies.Text
	say   func(int64) string
	set   func(*policies.Document, policies.Text)
}

// limits are the rows of what is learned. The floors are what an almost empty program needs
// with room for another day: a margin of nothing is nothing.
func (o Observation) limits() []limit {
	p, given := o.Peaks, o.Given.Limits
	plain := func(n int64) string { return strconv.FormatInt(n, 10) }
	bytes := func(n int64) string { return units.BytesSize(float64(n)) }
	millis := func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
	asSize := func(n int64) policies.Text { return size(n) }
	asClock := func(n int64) policies.Text { return clock(time.Duration(n) * time.Millisecond) }
	shm := p.ShmBytes
	if o.wrote(shmDir) {
		shm = max(shm, 16*mebibyte)
	}
	return []limit{
		{"limits.memory", orUnknown(p.MemoryBytes), 64 * mebibyte, sizeOf(given.Memory), roundSize, asSize, bytes, func(d *policies.Document, t policies.Text) { d.Limits.Memory, d.Limits.MemorySwap = t, swapOf(given) }},
		{"limits.pids", orUnknown(p.Pids), max(agent.PidsFloor, 16), numberOf(given.Pids), upTo(4), number, plain, func(d *policies.Document, t policies.Text) { d.Limits.Pids = t }},
		{"limits.cpu_time", orUnknown(p.CPUMS), 10_000, millisOf(given.CPUTime), upTo(1000), asClock, millis, func(d *policies.Document, t policies.Text) { d.Limits.CPUTime = t }},
		{"limits.timeout", orUnknown(p.WallMS), 60_000, millisOf(given.Timeout), upTo(1000), asClock, millis, func(d *policies.Document, t policies.Text) { d.Limits.Timeout = t }},
		{"limits.output", p.OutputBytes, mebibyte, sizeOf(given.Output), roundSize, asSize, bytes, func(d *policies.Document, t policies.Text) { d.Limits.Output = t }},
		{"limits.disk", p.DiskBytes, 64 * mebibyte, sizeOf(given.Disk), roundSize, asSize, bytes, func(d *policies.Document, t policies.Text) { d.Limits.Disk = t }},
		{"limits.shm", shm, mebibyte, sizeOf(given.Shm), roundSize, asSize, bytes, func(d *policies.Document, t policies.Text) { d.Limits.Shm = t }},
		{"ulimits.nofile", orUnknown(p.Descriptors), o.leastDescriptors(), nofile(o.Given), upTo(64), number, plain, func(d *policies.Document, t policies.Text) { d.Ulimits["nofile"] = t }},
	}
}

// orUnknown is for figures that no run has at 0.
func orUnknown(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

const mebibyte = 1 << 20

// leastDescriptors is larger where descriptors are made faster than they are sampled: by
// everything but opening files.
func (o Observation) leastDescriptors() int64 {
	if o.CallsKnown && len(o.Calls) == 0 {
		return 64
	}
	return 256
}

// value is what the document says, and why. A run never learns more than it was given.
func (l limit) value() (n int64, why string) {
	if l.peak < 0 {
		return l.given, "as the runs had; the peak is not known"
	}
	n = l.round(max(l.floor, l.peak+l.peak*MarginPercent/100))
	why = fmt.Sprintf("the peak was %s, and %d %% more", l.say(l.peak), MarginPercent)
	switch {
	case l.given > 0 && n >= l.given:
		return l.given, fmt.Sprintf("as the runs had; the peak was %s", l.say(l.peak))
	case l.peak+l.peak*MarginPercent/100 < l.floor:
		why = fmt.Sprintf("the peak was %s; this is the least that is learned", l.say(l.peak))
	}
	return n, why
}

func upTo(multiple int64) func(int64) int64 {
	return func(n int64) int64 { return (n + multiple - 1) / multiple * multiple }
}

// roundSize rounds up to three significant bits, and to whole MiB.
func roundSize(n int64) int64 {
	unit := max(int64(1)<<max(bits.Len64(uint64(n))-4, 0), mebibyte)
	return (n + unit - 1) / unit * unit
}

func sizeOf(t policies.Text) int64 {
	n, err := agent.ParseSize(string(t))
	if err != nil {
		return 0
	}
	return n
}

func numberOf(t policies.Text) int64 {
	n, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func millisOf(t policies.Text) int64 {
	d, err := time.ParseDuration(string(t))
	if err != nil {
		return 0
	}
	return d.Milliseconds()
}

// swapOf keeps any amount of swap; another amount counts with the memory that was learned, and
// is dropped.
func swapOf(given policies.Limits) policies.Text {
	if given.MemorySwap == "-1" {
		return given.MemorySwap
	}
	return ""
}
