package testhost

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// vmSlowness is how much longer tests may take in the vm lane at least: without KVM the machine is emulated.
const vmSlowness = 8

// maxSlowness bounds what is measured, so that a test that hangs ends.
const maxSlowness = 20

// The times of spin and fault on an idle host with a processor of 2.5 GHz.
const (
	spinIdle  = 10 * time.Millisecond
	faultIdle = 3 * time.Millisecond
)

// Patience scales a deadline for an idle host to the speed of this one: to how much longer
// a fixed piece of work takes here at the moment.
func Patience(idle time.Duration) time.Duration {
	least := 1.0
	if Lane() == LaneVM {
		least = vmSlowness
	}
	return time.Duration(float64(idle) * min(max(least, host.slowness(time.Now())), maxSlowness))
}

// pace is the host's measured speed.
type pace struct {
	mu       sync.Mutex // guards what follows
	measured time.Time
	factor   float64
	work     func() float64
}

var host = pace{work: slow}

// slowness returns a measurement that is at most a second old.
func (p *pace) slowness(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.measured.IsZero() || now.Sub(p.measured) > time.Second {
		p.factor, p.measured = p.work(), now
	}
	return p.factor
}

// slow measures arithmetic and page faults: there are hosts where only the second are slow.
func slow() float64 {
	return max(float64(timed(spin))/float64(spinIdle), float64(timed(fault))/float64(faultIdle))
}

func timed(work func()) time.Duration {
	began := time.Now()
	work()
	return time.Since(began)
}

// spin is a chain of multiplications, each of which waits for the one before.
func spin() {
	x := uint64(1)
	for range 5_000_000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	runtime.KeepAlive(x) // or the compiler leaves the loop out
}

// fault touches 8 MiB of new memory.
func fault() {
	memory, err := unix.Mmap(-1, 0, 8<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return // a host that has no memory left is not measured
	}
	for i := 0; i < len(memory); i += unix.Getpagesize() {
		memory[i] = 1
	}
	_ = unix.Munmap(memory)
}
