package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/scheduler"
)

// debugParts make what clove debug asks for. The first three need no lock of
// cloved's: they are there when everything else hangs.
var debugParts = map[api.DebugPart]func(system) (string, error){
	api.DebugVersions:   system.versions,
	api.DebugGoroutines: func(system) (string, error) { return goroutines() },
	api.DebugHeap:       func(system) (string, error) { return heap() },
	api.DebugConfiguration: func(s system) (string, error) {
		text, err := json.MarshalIndent(s.config(), "", "  ")
		return string(text) + "\n", err
	},
	api.DebugQueue: system.describeQueue,
	api.DebugMetrics: func(s system) (string, error) {
		var text bytes.Buffer
		err := s.meter.Write(&text)
		return text.String(), err
	},
	api.DebugLog: func(s system) (string, error) { return s.options.LogTail.String(), nil },
}

// debug answers with one part.
func (s system) debug(_ *request, p api.DebugParams) (api.DebugResult, error) {
	part, known := debugParts[p.Part]
	if !known {
		return api.DebugResult{}, api.Failure(api.CodeParams, fmt.Sprintf("the parts are %v", api.DebugParts), "there is no part %.64q", p.Part)
	}
	text, err := part(s)
	return api.DebugResult{Text: text}, err
}

// versions identifies a report: what was built, from which modules, and where it keeps
// its files.
func (s system) versions() (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "cloved %s, API %d, %s %s/%s\nprocess %d, since %s\nroot %s, run directory %s\nclove %s\n\n", s.options.Version, api.Version,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, os.Getpid(), s.started.Format(time.RFC3339), s.options.Paths.State, s.options.Paths.Run, s.options.Clove)
	if build, known := debug.ReadBuildInfo(); known {
		for _, module := range build.Deps {
			fmt.Fprintln(&text, module.Path, module.Version)
		}
	}
	return text.String(), nil
}

// stackBytes bounds the listing of single goroutines. Goroutines with the same stack
// are listed once before it, with their number.
const stackBytes = 1 << 20

// goroutines lists what each waits for: alike ones together with their number
// first, then as many single ones as fit into stackBytes.
func goroutines() (string, error) {
	var text bytes.Buffer
	err := pprof.Lookup("goroutine").WriteTo(&text, 1)
	stacks := make([]byte, stackBytes)
	fmt.Fprintf(&text, "\n\n%s", stacks[:runtime.Stack(stacks, true)])
	return text.String(), err
}

// heap is what was allocated where, in the text form of pprof: numbers of bytes
// and objects, never their content.
func heap() (string, error) {
	var text bytes.Buffer
	err := pprof.Lookup("heap").WriteTo(&text, 1)
	return text.String(), err
}

// describeQueue lists the queued runs with their reasons, and what is promised.
func (s system) describeQueue() (string, error) {
	if err := s.cache.refresh(); err != nil {
		return "", err
	}
	states, live := s.cache.tally()
	use, err := s.memory.of(live)
	waiting, draining := s.reconciler.queue()
	var text strings.Builder
	fmt.Fprintf(&text, "runs %v\nmemory: agents use %d MiB and have %d MiB in reserve, of %d MiB; the host has %d MiB available, and needs %d MiB for a start\ndrained %t\nwaiting %v\n\n",
		states, use.Used>>20, scheduler.Reserves(live)>>20, use.Limit>>20, use.Available>>20, use.Floor>>20, draining, waiting)
	for _, run := range s.cache.all(func(run *agent.Run) bool { return run.State == agent.StateQueued }) {
		reason, _ := s.reconciler.reason(run.Spec.ID)
		fmt.Fprintf(&text, "%s %s since %s, priority %d: %s\n", run.Spec.ID, run.Spec.Name, run.Queue.Since.Format(time.RFC3339), run.Spec.Priority, reason)
	}
	return text.String(), err
}
