package run

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/settings"
)

//go:embed probe.sh
var probeScript string

// Bounds of the probe: what it prints, and how long it takes on a machine that is busy.
const (
	probeMost = 64 << 10
	probeTime = "1m"
)

// Probe runs a script in a sandbox that has the settings of the suite's attempts, and says
// what it found there: what was asked for is not what counts.
func (r *Runner) Probe(ctx context.Context) ([]bench.Knob, error) {
	dir := filepath.Join(r.Dir, workDir, "probe")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Join(r.Dir, workDir))
	limits := over(r.Suite.Limits, standard)
	cpus, err := share(string(limits.CPUs))
	if err != nil {
		return nil, err
	}
	if wholeCPUs(cpus) > len(r.Host.CPUs) {
		return nil, nil // Check refuses the attempts
	}
	seed, pins := r.Suite.Seeds[0], r.Host.CPUs[:wholeCPUs(cpus)]
	q := r.request(limits, suite.Network{}, seed, pins)
	q.Args = []string{"sh", "-c", probeScript}
	q.Set(settings.Remove, "true")
	q.Set(settings.Timeout, probeTime) // the task's may be too short for a shell
	delete(q.Values, settings.CPUTime)
	out := filepath.Join(dir, "out")
	record, _, err := r.sandbox(ctx, q, Output{}, out, filepath.Join(dir, "err"))
	if err != nil {
		return nil, err
	}
	text, err := readBounded(out, probeMost)
	if err != nil {
		return nil, err
	}
	if record.Status != agent.StatusExited || record.ExitCode != 0 {
		return nil, &agent.Error{Step: "bench", Message: fmt.Sprintf("the probe of the conditions ended with %s, exit status %d", record.Status, record.ExitCode),
			Hint: "clove doctor says what this host lacks"}
	}
	return append(knobs(values(text), cpus, seed, list(pins)), clockKnobs(q.ClockStart, record, values(text)["uptime"])...), nil
}

func values(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
			found[key] = value
		}
	}
	return found
}

// knobs compares what the probe found with what parity wants.
func knobs(found map[string]string, cpus float64, seed int64, pins string) []bench.Knob {
	all := []bench.Knob{
		swapKnob(found),
		capKnob(found, cpus),
		knob("CPU burst", "0", found["burst"]),
		pinKnob(found["cpus"], pins),
	}
	for _, v := range variables(seed) {
		all = append(all, knob(v.name, v.value, found[v.name]))
	}
	return append(all,
		knob("time zone", "UTC", found["zone"]),
		knob("umask", "0022", found["umask"]),
		knob("hostname", hostname, found["hostname"]),
		knob("files in /workspace and /tmp of a fresh layer", "0", found["left"]),
		bench.Knob{Name: "order of directories", Wanted: "sorted", Found: "the file system's: the kernel has no setting"})
}

// launchMost is far above what a launch takes before a program can read a clock.
const launchMost = time.Minute

// clockKnobs says where the clocks began. A time namespace has a monotonic and a boot clock of
// its own; the wall clock is one for all of the machine.
func clockKnobs(start time.Duration, record agent.Record, uptime string) []bench.Knob {
	clocks := bench.Knob{Name: "start of the monotonic clocks", Wanted: "fixed", Found: "the host's: the suite has no clock_start"}
	if start > 0 {
		clocks.Wanted, clocks.Found = start.String(), "not known here"
		if word, _, _ := strings.Cut(uptime, " "); word != "" {
			clocks.Found = word + "s, by " + cmp.Or(record.Enforced[agent.ControlClockStart], "nothing")
			after, err := time.ParseDuration(word + "s")
			clocks.Enforced = err == nil && after >= start && after-start < launchMost && record.Enforced[agent.ControlClockStart] != ""
		}
	}
	return []bench.Knob{clocks, {Name: "start of the wall clock", Wanted: "fixed", Found: "the host's: no namespace has one of its own"}}
}

// knob compares texts. What is not known here is not enforced.
func knob(name, wanted, found string) bench.Knob {
	if found == "" {
		return bench.Knob{Name: name, Wanted: wanted, Found: "not known here"}
	}
	return bench.Knob{Name: name, Wanted: wanted, Found: found, Enforced: found == wanted}
}

// swapKnob knows both hierarchies: v1 limits memory and swap together, v2 swap alone.
func swapKnob(found map[string]string) bench.Knob {
	k := bench.Knob{Name: "swap", Wanted: "0", Found: "not known here"}
	memory, err := strconv.ParseInt(found["memory"], 10, 64)
	both, err2 := strconv.ParseInt(found["memsw"], 10, 64)
	switch {
	case found["swap"] != "":
		k.Found = found["swap"]
	case err == nil && err2 == nil:
		k.Found = strconv.FormatInt(both-memory, 10)
	}
	k.Enforced = k.Found == k.Wanted
	return k
}

// capKnob compares shares of a processor.
func capKnob(found map[string]string, cpus float64) bench.Knob {
	k := bench.Knob{Name: "CPU cap", Wanted: strconv.FormatFloat(cpus, 'f', -1, 64), Found: "not known here"}
	quota, period := found["quota"], found["period"]
	if words := strings.Fields(found["max"]); len(words) == 2 {
		quota, period = words[0], words[1]
	}
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err == nil && err2 == nil && p > 0 {
		k.Found = strconv.FormatFloat(q/p, 'f', -1, 64)
		k.Enforced = math.Abs(q/p-cpus) < 0.01
	}
	return k
}

// pinKnob knows that the kernel prints ranges.
func pinKnob(found, pins string) bench.Knob {
	k := knob("pinned to processors", pins, found)
	k.Enforced = found != "" && expand(found) == expand(pins)
	return k
}

// expand writes the ranges of a list of processors out.
func expand(text string) string {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if isRange {
			to, _ = strconv.Atoi(high)
		}
		if err != nil || to-from > 1<<12 {
			return text
		}
		for n := from; n <= to; n++ {
			all = append(all, strconv.Itoa(n))
		}
	}
	return strings.Join(all, ",")
}
