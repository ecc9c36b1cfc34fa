package run

import (
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/machine"
)

// Manifest describes the bench before its first attempt.
func (r *Runner) Manifest(attempts int) (bench.Manifest, error) {
	m := bench.Manifest{Version: bench.ManifestVersion, Began: time.Now().UTC(), Parity: !r.NoParity, Parallel: r.Parallel, Attempts: attempts,
		Suite: bench.SuiteID{Name: r.Suite.Name, Version: r.Suite.Release, SHA256: r.Suite.SHA256}, Host: machine.Describe(len(r.Host.CPUs))}
	var err error
	m.Binaries, err = binaries()
	return m, err
}

// binaries are the hashes of this program and of the clove-init beside it.
func binaries() (map[string]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, agent.Failed("binaries", err)
	}
	all := map[string]string{}
	for name, path := range map[string]string{"clove": "/proc/self/exe", "clove-init": filepath.Join(filepath.Dir(self), "clove-init")} {
		sum, err := SumFile(path)
		if os.IsNotExist(err) {
			continue // it is elsewhere: a package's
		}
		if err != nil {
			return nil, agent.Failed("binaries", err)
		}
		all[name] = sum
	}
	return all, nil
}
