package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"time"
)

// The programs that the commands run. `date` prints the time, and is the smallest
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
	Clove   string    `json:"clove"` // what `clove version` says
	Kernel  string    `json:"kernel"`
	CPUs    int       `json:"cpus"`
	Rounds  int       `json:"rounds"`
	Started time.Time `json:"started"`
	Load    [2]string `json:"load"` // /proc/loadavg's averages before and after
	Tables  []*table  `json:"tables"`
}

// String is the tables for people.
func (r *results) String() string {
	text := fmt.Sprintf("%s, Linux %s, %d CPUs, %d rounds, load %s before and %s after\n", r.Clove, r.Kernel, r.CPUs, r.Rounds, r.Load[0], r.Load[1])
	for _, t := range r.Tables {
		text += "\n" + t.String()
	}
	return text
}

// The measurements of a command.
const (
	whatWhole = "whole command"
	whatFirst = "first instruction"
)

// cpuOf is the row with the CPU time of what is measured.
func cpuOf(what string) string { return what + ", CPU time" }

// part is a table, and what fills it.
type part struct {
	title string
	steps []func(*bench, *table) error
}

var (
	commandsPart = part{"commands", []func(*bench, *table) error{(*bench).measureRuns, (*bench).measureLives, (*bench).measureDocker}}
	networkPart  = part{"network", []func(*bench, *table) error{(*bench).measureNetwork}}
	daemonPart   = part{"daemon", []func(*bench, *table) error{(*bench).measureDaemon}}
	kernelPart   = part{"what agents share", []func(*bench, *table) error{(*bench).measureLedgers, (*bench).measureStarts}}
	mailPart     = part{"mail", []func(*bench, *table) error{(*bench).measureMail}}
	modelsPart   = part{"models", []func(*bench, *table) error{(*bench).measureModels}}
	policiesPart = part{"policies", []func(*bench, *table) error{(*bench).measurePolicies}}
)

// parts are what -only names; "" is all of the benchmark.
var parts = map[string][]part{
	"":         {commandsPart, networkPart, daemonPart, kernelPart, mailPart, modelsPart, policiesPart},
	"runs":     {{"commands", commandsPart.steps[:1]}},
	"oci":      {{"commands", []func(*bench, *table) error{(*bench).measureOCI, (*bench).measureLives, (*bench).measureDocker}}},
	"docker":   {{"commands", commandsPart.steps[2:]}},
	"network":  {networkPart},
	"daemon":   {daemonPart},
	"kernel":   {kernelPart},
	"mail":     {mailPart},
	"models":   {modelsPart},
	"policies": {policiesPart},
}

// measure measures one part of the benchmark, or all parts.
func (b *bench) measure(only string) (*results, error) {
	chosen, found := parts[only]
	if !found {
		return nil, fmt.Errorf("no part is called %q", only)
	}
	r := &results{Clove: output(b.clove, "version"), Kernel: output("uname", "-r"), CPUs: runtime.NumCPU(), Rounds: b.rounds, Started: time.Now().UTC()}
	r.Load[0] = load()
	for _, p := range chosen {
		t := newTable(p.title)
		for _, step := range p.steps {
			if err := step(b, t); err != nil {
				return nil, err
			}
		}
		r.Tables = append(r.Tables, t)
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

// measureOCI compares only the two programs that run bundles.
func (b *bench) measureOCI(t *table) error {
	_, err := b.measurePeers(t, []peer{peerNamed(reference), peerNamed(peerOCI)})
	return err
}

// measurePeers measures whole commands of those peers that this machine has.
func (b *bench) measurePeers(t *table, all []peer) (present []peer, err error) {
	for _, p := range all {
		t.describe(p.name, p.does)
		if err := p.ready(b); err != nil {
			t.Absent[p.name] = err.Error()
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
			t.Figures = append(t.Figures, figures...)
		}
	}
	return present, nil
}

// measureRuns compares all peers, and then measures clove's steps and memory.
func (b *bench) measureRuns(t *table) error {
	present, err := b.measurePeers(t, peers)
	if err == nil {
		err = b.steps(t)
	}
	if err == nil {
		err = b.memories(t, present)
	}
	return err
}

// compare runs the peers in turn in every round, so that a change of the machine's load
// affects all of them. base is the name of the peer that the others are divided by.
func (b *bench) compare(present []peer, base, what string, n int) ([]figure, error) {
	row := atOnceText(what, n)
	s, err := b.inRounds(func(_ int, s samples) error {
		for _, p := range present {
			took, cpu, err := b.runTogether(p, what, n)
			if err != nil {
				return err
			}
			s.add(row, p.name, took...)
			if !p.foreign {
				s.add(cpuOf(row), p.name, cpu...)
			}
		}
		return nil
	})
	return figuresOf(present, base, row, s), err
}

// atOnceText is what is measured of several commands at once.
func atOnceText(what string, n int) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%s, %d at once", what, n)
}

// figuresOf has lines for the times and the CPU times of each peer.
func figuresOf(present []peer, base, what string, s samples) (figures []figure) {
	names := make([]string, len(present))
	for i, p := range present {
		names[i] = p.name
	}
	for _, what := range []string{what, cpuOf(what)} {
		figures = append(figures, comparison{what: what, unit: unitMS, base: base}.figures(names, s)...)
	}
	return figures
}

// runTogether starts n commands as fast as possible and waits for all of them, also
// after a failure: a command that is left would disturb the next round. It returns the time
// and the CPU time of each, in milliseconds.
func (b *bench) runTogether(p peer, what string, n int) (took, cpu []float64, failure error) {
	type ended struct {
		took, cpu float64
		err       error
	}
	all := make(chan ended, n)
	for range n {
		// Here and not in the goroutine: prepare counts without a lock.
		cmd := b.prepare(p, programOf(what))
		go func() {
			took, cpu, err := b.runOne(cmd, what)
			all <- ended{took, cpu, err}
		}()
	}
	for range n {
		e := <-all
		took, cpu = append(took, e.took), append(cpu, e.cpu)
		if e.err != nil {
			failure = fmt.Errorf("cannot measure %s: %w", p.name, e.err)
		}
	}
	return took, cpu, failure
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

// runOne runs a command from its start to its end.
func (b *bench) runOne(cmd *exec.Cmd, what string) (took, cpu float64, err error) {
	began := time.Now()
	said, err := b.said(cmd)
	ended := time.Now()
	if err == nil && what == whatFirst {
		ended, err = moment(said)
	}
	if err != nil {
		return 0, 0, err
	}
	return millis(ended.Sub(began)), millis(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()), nil
}

// said runs a command on the thread in whose mount namespace the host's root is bound, and
// returns what it has printed.
func (b *bench) said(cmd *exec.Cmd) ([]byte, error) {
	var said, stderr tail
	cmd.Stdout, cmd.Stderr = &said, &stderr
	err := b.thread.Do(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, stderr.text)
	}
	return said.text, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
