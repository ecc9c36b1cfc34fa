package machine

import (
	"slices"
	"time"

	"clove.run/clove/bench"
)

// pieces of work are measured at each time; a piece takes about pieceTime.
const (
	pieces    = 40
	pieceTime = 2 * time.Millisecond
)

// memoryBytes is larger than the caches of a processor usually are for one core, and small
// enough for every host.
const memoryBytes = 8 << 20

// Measure does equal pieces of work, in the processor and through memory, and says how far
// apart their times are: (p90 - p10) / median. It takes about a fifth of a second.
func Measure(when string) bench.Noise {
	spinning := calibrated(spin)
	table := make([]uint64, memoryBytes/8)
	walking := calibrated(func(n int) { walk(table, n) })
	times := spinning.times()
	return bench.Noise{When: when, Spin: spread(times), Memory: spread(walking.times()), SpinMS: median(times)}
}

// piece is a loop with as many rounds as fit into pieceTime on this machine.
type piece struct {
	work   func(rounds int)
	rounds int
}

func calibrated(work func(int)) piece {
	rounds := 1 << 10
	for {
		began := time.Now()
		work(rounds)
		if took := time.Since(began); took >= pieceTime || rounds >= 1<<30 {
			return piece{work, rounds}
		}
		rounds *= 2
	}
}

func (p piece) times() []float64 {
	all := make([]float64, pieces)
	for i := range all {
		began := time.Now()
		p.work(p.rounds)
		all[i] = float64(time.Since(began).Nanoseconds()) / 1e6
	}
	slices.Sort(all)
	return all
}

// sink keeps the compiler from leaving the loops out.
var sink uint64

func spin(rounds int) {
	x := sink | 1
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink = x
}

// walk reads places of the table that depend on one another, so that each waits for memory.
func walk(table []uint64, rounds int) {
	x := sink | 1
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407 + table[(x>>33)%uint64(len(table))]
	}
	sink = x
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

func spread(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[n*9/10] - sorted[n/10]) / median(sorted)
}

// quietSpread is the noise up to which --require-quiet begins: ten percent of a piece of work.
const quietSpread = 0.1

// Quiet reports whether a machine is quiet enough to compare times on.
func Quiet(n bench.Noise) bool { return n.Spin <= quietSpread && n.Memory <= quietSpread }
