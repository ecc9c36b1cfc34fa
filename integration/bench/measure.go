package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"
)

// What the commands run. `date` prints the time, and is the smallest
// program in every base system that does.
var (
	programTrue = []string{"/bin/true"}
	programDate = []string{"/bin/date", "+%s%N"}
	programIdle = []string{"/bin/sh", "-c", "echo idle; exec sleep 3600"}
)

// together are the numbers of commands that run at once.
var together = []int{1, 10, 50}

// warmups is the number of rounds that are not counted: they fill caches and build
// clove's template.
const warmups = 3

// results is what goes to the JSON file.
type results struct {
	Clove    string             `json:"clove"` // what `clove version` says
	Kernel   string             `json:"kernel"`
	CPUs     int                `json:"cpus"`
	Rounds   int                `json:"rounds"`
	Started  time.Time          `json:"started"`
	Load     [2]string          `json:"load"`             // /proc/loadavg's averages before and after
	Docker   string             `json:"docker,omitempty"` // the engine's version and its own runc's
	Absent   map[string]string  `json:"absent"`           // peer to why it was not measured
	Figures  []figure           `json:"figures"`
	Steps    map[string]float64 `json:"steps_ms"` // the steps of one run as clove reports them, medians
	Memories []memory           `json:"memory"`
	Network  *network           `json:"network,omitempty"`
	Daemon   []daemonFigure     `json:"daemon,omitempty"`
	Shared   *shared            `json:"shared,omitempty"`
	Models   *modelResults      `json:"models,omitempty"`
	Policies *policyResults     `json:"policies,omitempty"`
}

// figure is one line of the table: a peer, a moment, a number of runs at once.
type figure struct {
	Peer     string   `json:"peer"`
	What     string   `json:"what"`
	Together int      `json:"together"`
	MS       spread   `json:"ms"`
	CPUMS    *float64 `json:"cpu_ms,omitempty"` // median; absent where the work is another process's
	Ratio    *ratio   `json:"ratio,omitempty"`  // to the reference peer
}

// What is measured of a command.
const (
	whatWhole = "whole command"
	whatFirst = "first instruction"
)

// measure runs one part of the benchmark, or all parts.
func (b *bench) measure(only string) (*results, error) {
	r := &results{Clove: output(b.clove, "version"), Kernel: output("uname", "-r"), CPUs: runtime.NumCPU(),
		Rounds: b.rounds, Started: time.Now().UTC(), Absent: map[string]string{}}
	r.Load[0] = load()
	steps, err := b.stepsOf(only)
	if err != nil {
		return nil, err
	}
	for _, measure := range steps {
		if err := measure(r); err != nil {
			return nil, err
		}
	}
	r.Load[1] = load()
	return r, nil
}

// load is the machine's load average over 1, 5 and 15 minutes. It is printed beside the
// figures: on a busy machine they mean less.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // it is only shown
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// stepsOf are the measurements of a part; "" is all parts.
func (b *bench) stepsOf(only string) ([]func(*results) error, error) {
	network := func(r *results) (err error) {
		r.Network, err = b.measureNetwork()
		return err
	}
	daemon := func(r *results) (err error) {
		r.Daemon, err = b.measureDaemon()
		return err
	}
	kernel := func(r *results) (err error) {
		r.Shared, err = b.measureKernel()
		return err
	}
	models := func(r *results) (err error) {
		r.Models, err = b.measureModels()
		return err
	}
	policies := func(r *results) (err error) {
		r.Policies, err = b.measurePolicies()
		return err
	}
	parts := map[string][]func(*results) error{
		// measureRuns includes the bundles, so measureOCI is not repeated.
		"":           {b.measureRuns, b.measureLives, b.measureDocker, network, daemon, kernel, models, policies},
		partRuns:     {b.measureRuns},
		partOCI:      {b.measureOCI, b.measureLives, b.measureDocker},
		partDocker:   {b.measureDocker},
		partNetwork:  {network},
		partDaemon:   {daemon},
		partKernel:   {kernel},
		partModels:   {models},
		partPolicies: {policies},
	}
	if parts[only] == nil {
		return nil, fmt.Errorf("no part is called %q", only)
	}
	return parts[only], nil
}

// measureOCI compares only the two programs that run bundles.
func (b *bench) measureOCI(r *results) error {
	var bundled []peer
	for _, p := range peers {
		if p.name == reference || p.name == peerOCI {
			bundled = append(bundled, p)
		}
	}
	_, err := b.measurePeers(r, bundled)
	return err
}

// measurePeers measures whole commands of those peers that this machine has.
func (b *bench) measurePeers(r *results, all []peer) (present []peer, err error) {
	for _, p := range all {
		if err := p.ready(b); err != nil {
			r.Absent[p.name] = err.Error()
			continue
		}
		present = append(present, p)
	}
	for _, n := range together {
		for _, what := range []string{whatWhole, whatFirst} {
			figures, err := b.compare(present, reference, what, n)
			if err != nil {
				return nil, err
			}
			r.Figures = append(r.Figures, figures...)
		}
	}
	return present, nil
}

// measureRuns compares all peers, and then measures clove's steps and memory.
func (b *bench) measureRuns(r *results) error {
	present, err := b.measurePeers(r, peers)
	if err != nil {
		return err
	}
	if r.Steps, err = b.steps(); err != nil {
		return err
	}
	r.Memories, err = b.memories(present)
	return err
}

// compare runs the peers in turn in every round, so that a change of the machine's load
// affects all of them. base is the name of the peer that the others are divided by.
func (b *bench) compare(present []peer, base, what string, n int) ([]figure, error) {
	taken := make([][]sample, len(present))
	for round := range warmups + b.rounds {
		for i, p := range present {
			samples, err := b.runTogether(p, what, n)
			if err != nil {
				return nil, err
			}
			if round >= warmups {
				taken[i] = append(taken[i], samples...)
			}
		}
	}
	return figuresOf(present, base, what, n, taken), nil
}

// figuresOf has a line for each peer. taken are their samples in the order of the
// rounds, n in each round.
func figuresOf(present []peer, base, what string, n int, taken [][]sample) []figure {
	var theirs []float64
	if i := slices.IndexFunc(present, func(p peer) bool { return p.name == base }); i >= 0 {
		theirs = times(taken[i])
	}
	figures := make([]figure, len(present))
	for i, p := range present {
		figures[i] = figure{Peer: p.name, What: what, Together: n, MS: spreadOf(times(taken[i])), Ratio: ratioOf(times(taken[i]), theirs, n)}
		if !p.foreign {
			cpu := median(cpuTimes(taken[i]))
			figures[i].CPUMS = &cpu
		}
	}
	return figures
}

// sample is one run: its time and its CPU time, in milliseconds.
type sample struct{ took, cpu float64 }

func times(samples []sample) []float64 {
	return column(samples, func(s sample) float64 { return s.took })
}

func cpuTimes(samples []sample) []float64 {
	return column(samples, func(s sample) float64 { return s.cpu })
}

// column takes one value out of each sample.
func column(samples []sample, of func(sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return values
}

// runTogether starts n commands as fast as possible and waits for all of them, also
// after a failure: a command that is left would disturb the next round.
func (b *bench) runTogether(p peer, what string, n int) ([]sample, error) {
	type ended struct {
		sample
		err error
	}
	all := make(chan ended, n)
	for range n {
		// Here and not in the goroutine: prepare counts without a lock.
		cmd := b.prepare(p, programOf(what))
		go func() {
			s, err := b.runOne(cmd, what)
			all <- ended{s, err}
		}()
	}
	samples := make([]sample, 0, n)
	var failure error
	for range n {
		e := <-all
		samples = append(samples, e.sample)
		if e.err != nil {
			failure = fmt.Errorf("cannot measure %s: %w", p.name, e.err)
		}
	}
	return samples, failure
}

// programOf is date where the moment of the first instruction is measured: it prints
// the time.
func programOf(what string) []string {
	if what == whatFirst {
		return programDate
	}
	return programTrue
}

// prepare makes the command of the next run, with an id that no other run has.
func (b *bench) prepare(p peer, program []string) *exec.Cmd {
	b.serial++
	argv := p.command(b, fmt.Sprintf("%s-%d", path.Base(b.scratch), b.serial), program...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = b.environment()
	cmd.Dir = "/"
	return cmd
}

// runOne runs a command from its start to its end. It starts it on the thread in whose
// mount namespace the host's root is bound.
func (b *bench) runOne(cmd *exec.Cmd, what string) (sample, error) {
	var said, stderr tail
	cmd.Stdout, cmd.Stderr = &said, &stderr
	began := time.Now()
	err := b.thread.Do(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	took := time.Since(began)
	if err != nil {
		return sample{}, fmt.Errorf("%v: %w: %s", cmd.Args, err, stderr.text)
	}
	if what == whatFirst {
		at, err := said.moment()
		if err != nil {
			return sample{}, err
		}
		took = at.Sub(began)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return sample{took: millis(took), cpu: millis(cpu)}, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
