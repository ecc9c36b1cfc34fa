package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/bench/files"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/settings"
)

// environmentsDir is in the folder of results, or where several benches share it.
const environmentsDir = "environments"

// doneFile marks a folder of a set-up that succeeded.
const doneFile = "done"

// layerFile is what a set-up changed, where the root is kept; absent: nothing.
const layerFile = "layer.img"

// prepared is what a set-up left: a folder for /env, or a layer.
type prepared struct{ env, layer string }

// Prepare makes what environments show at /env, or begin with. One with the same commands, files
// and root as an earlier one is used again.
func (r *Runner) Prepare(ctx context.Context, cache string) error {
	r.prepared = map[string]prepared{}
	for _, e := range r.Suite.Environments {
		if e.Setup == nil {
			continue
		}
		key, err := r.environmentKey(e)
		if err != nil {
			return err
		}
		dir := filepath.Join(cmp.Or(cache, filepath.Join(r.Dir, environmentsDir)), key)
		if _, err := os.Stat(filepath.Join(dir, doneFile)); err != nil {
			if err := r.setUp(ctx, e, dir); err != nil {
				return err
			}
		}
		if !e.Kept() {
			r.prepared[e.Name] = prepared{env: filepath.Join(dir, "env")}
		} else if layer := existing(filepath.Join(dir, layerFile)); layer != "" {
			r.prepared[e.Name] = prepared{layer: layer}
		}
	}
	return nil
}

// environmentKey is a hash of all that decides what is in /env, as far as it is known: what
// a command fetches from a network is not.
func (r *Runner) environmentKey(e suite.Environment) (string, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(text)
	if e.Kept() {
		fmt.Fprint(sum, below(e.Rootfs)) // a layer fits to what was below it
	}
	if e.Setup.Files != "" {
		hash, err := files.Hash(filepath.Join(r.Suite.Dir, e.Setup.Files))
		if err != nil {
			return "", err
		}
		fmt.Fprint(sum, hash)
	}
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

// below is what stands for the root below a layer: when its list of packages was last written.
func below(rootfs string) string {
	text := ""
	for _, name := range []string{"var/lib/dpkg/status", "lib/apk/db/installed", "etc/os-release"} {
		if info, err := os.Lstat(filepath.Join("/", rootfs, name)); err == nil {
			text += fmt.Sprintf("%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}

// existing is path if it exists.
func existing(path string) string {
	if _, err := os.Lstat(path); err != nil {
		return ""
	}
	return path
}

// setUp executes the commands of an environment, each in a sandbox of its own. What they write
// into /env goes to the host's folder.
func (r *Runner) setUp(ctx context.Context, e suite.Environment, dir string) error {
	if err := os.RemoveAll(dir); err != nil { // of a set-up that failed
		return err
	}
	work := filepath.Join(dir, "files")
	for _, path := range []string{filepath.Join(dir, "env"), work} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	if err := copyFrom(r.Suite.Dir, e.Setup.Files, work); err != nil {
		return err
	}
	for i, command := range e.Setup.Commands {
		if err := undone(filepath.Join(dir, "env"), r.setUpOnce(ctx, e, dir, i, command)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, doneFile), nil, 0o644)
}

func (r *Runner) setUpOnce(ctx context.Context, e suite.Environment, dir string, i int, command []string) error {
	network := e.Setup.Network
	if network.Mode == "" && len(network.Allow) == 0 {
		network.Mode = "public"
	}
	limits := over(e.Setup.Limits, over(r.Suite.Limits, standard))
	q := r.request(limits, network, r.Suite.Seeds[0], nil)
	q.Args = command
	q.Set(settings.CPUSet, "")
	q.Set(settings.Rootfs, e.Rootfs)
	onRoot(&q, e)
	layer := ""
	if files := filepath.Join(dir, "files"); e.Kept() {
		layer = existing(filepath.Join(dir, layerFile))
		q.SetList(settings.Volume, []string{files + ":/setup:ro"})
	} else {
		q.Set(settings.Workspace, files)
		q.Set(settings.Remove, "true")
		if err := bindEnv(&q, filepath.Join(dir, "env")); err != nil {
			return err
		}
	}
	log := filepath.Join(dir, fmt.Sprintf("setup-%d.log", i))
	record, spec, err := r.sandbox(ctx, q, Output{Layer: layer}, filepath.Join(dir, fmt.Sprintf("setup-%d.out", i)), log)
	if err != nil {
		return err
	}
	if e.Kept() {
		defer r.Sandboxes.Remove(context.WithoutCancel(ctx), spec.ID) // what is left, clove gc removes
	}
	if record.Status != agent.StatusExited || record.ExitCode != 0 {
		return &agent.Error{Step: "environments." + e.Name, Message: fmt.Sprintf("set-up command %d ended with %s, exit status %d", i+1, record.Status, record.ExitCode),
			Hint: "its output is in " + log}
	}
	if !e.Kept() {
		return checkEnv(e, filepath.Join(dir, "env"), q.Text(settings.Disk))
	}
	_, err = r.Sandboxes.KeepLayer(ctx, spec.ID, filepath.Join(dir, layerFile))
	return err
}
