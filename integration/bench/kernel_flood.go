package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// floodSeconds is how long another agent floods, or burns processor time, in a round.
	floodSeconds = 1.5
	// floodCallers are less than the 128 calls that an agent may have in flight: a call's
	// place is free just behind its answer.
	floodCallers = 96
	// floodRounds are fewer than others: each is long and has hundreds of samples.
	floodRounds = 8
)

const whatBeside = "a grant check beside another agent, p99"

// measureFlood compares an agent's calls beside another one that floods with the same calls
// beside one that uses as much processor time without a call.
func (w *ledgers) measureFlood(t *table) error {
	other, err := w.agentNamed(w.few, "bench-other")
	if err != nil {
		return err
	}
	flood := ledgerOrder{Ledger: ledgerClove, Check: true, Callers: floodCallers, Seconds: floodSeconds}
	before, err := busySeconds()
	if err != nil {
		return err
	}
	if _, err := (&ledgerPeer{"another agent", ledgerClove, other}).run(flood); err != nil {
		return err
	}
	after, err := busySeconds()
	if err != nil {
		return err
	}
	burning := ledgerOrder{Burn: (after - before) / floodSeconds, Seconds: floodSeconds}
	var flooded, burnt []float64
	for range floodRounds {
		for _, beside := range []struct {
			order ledgerOrder
			p99   *[]float64
		}{{burning, &burnt}, {flood, &flooded}} {
			took, err := w.checksBeside(other, beside.order)
			if err != nil {
				return err
			}
			*beside.p99 = append(*beside.p99, quantile(took, 0.99))
		}
	}
	burns := fmt.Sprintf("that burns %.1f processors", burning.Burn)
	t.Figures = append(t.Figures, figure{What: whatBeside, Peer: burns, Unit: unitMS, Values: spreadOf(burnt)},
		figure{What: whatBeside, Peer: "that floods", Unit: unitMS, Values: spreadOf(flooded), Ratio: ratioOf(flooded, burnt), Base: "burning", Aim: "ratio 2"})
	return nil
}

// checksBeside returns how long checks take while the other agent carries out an order. The
// last part of its time is left out: it may end a little earlier.
func (w *ledgers) checksBeside(other *remote, o ledgerOrder) (took []float64, err error) {
	ended := make(chan error, 1)
	go func() {
		_, err := (&ledgerPeer{"another agent", ledgerClove, other}).run(o)
		ended <- err
	}()
	me := &ledgerPeer{ledgerClove, ledgerClove, w.inside}
	for began := time.Now(); err == nil && time.Since(began).Seconds() < 0.8*o.Seconds; {
		var said report
		said, err = me.run(ledgerOrder{Check: true, Callers: 1, Turns: 50})
		took = append(took, said.Values...)
	}
	return took, errors.Join(err, <-ended)
}

// burn uses so many processors' time until a moment, in slices that are short beside a call.
func burn(processors float64, until time.Time) {
	threads := int(math.Ceil(processors))
	const slice = time.Millisecond
	share := time.Duration(processors / float64(threads) * float64(slice))
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for began := time.Now(); began.Before(until); began = time.Now() {
				for time.Since(began) < share {
				}
				time.Sleep(slice - share)
			}
		})
	}
	all.Wait()
}

// busySeconds is the processor time that the machine has used since it started.
func busySeconds() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return busyOf(text)
}

// userHZ is the unit of /proc/stat: USER_HZ, 100 a second on all architectures that clove
// is built for.
const userHZ = 100

// busyOf adds the columns of the first line but idle, iowait (the fourth and fifth) and
// guests, which user has already (proc_stat(5)).
func busyOf(text []byte) (float64, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var ticks float64
	for i, field := range fields[1:9] {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, err
		}
		if i != 3 && i != 4 {
			ticks += value
		}
	}
	return ticks / userHZ, nil
}
