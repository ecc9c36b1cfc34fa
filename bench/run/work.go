package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"clove.run/clove/bench"
	"clove.run/clove/bench/files"
	"clove.run/clove/bench/plan"
)

// work is the folders of one attempt. Two are removed when it is over: what it works in, and
// the folder of a try that said nothing.
type work struct {
	dir  string // attempts/ID: what stays
	temp string // work/ID
	log  string // the grader's
}

func (r *Runner) work(a plan.Attempt) work {
	dir := filepath.Join(r.Dir, bench.AttemptsDir, a.ID())
	return work{dir, filepath.Join(r.Dir, workDir, a.ID()), filepath.Join(dir, graderLog)}
}

// workDir is empty between two benches.
const workDir = "work"

func (w work) workspace() string { return filepath.Join(w.temp, "workspace") }
func (w work) task() string      { return filepath.Join(w.temp, "task") }
func (w work) grader() string    { return filepath.Join(w.temp, "grader") }
func (w work) output() string    { return filepath.Join(w.dir, "output") }
func (w work) packed() string    { return filepath.Join(w.dir, PackedFile) }
func (w work) layer() string     { return filepath.Join(w.dir, LayerFile) }

// The files of an attempt's folder.
const (
	PackedFile  = "files.tar"
	LayerFile   = "layer.img" // instead of it, where the whole root is kept
	ChangesFile = "changes.json"
	InstrFile   = "instruction.md"
	graderLog   = "grader.log"
)

// make begins with nothing that an earlier try left.
func (w work) make(r *Runner, a plan.Attempt) error {
	if err := w.clear(); err != nil {
		return err
	}
	for _, dir := range []string{w.workspace(), w.task(), w.output()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := copyFrom(r.Suite.Dir, a.Task.Files, w.workspace()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.task(), InstrFile), []byte(a.Task.Instruction), 0o644)
}

// freshGrader makes the grader's folder. Another user of the grader's sandbox, as which it
// may execute an agent's program, cannot read it.
func (w work) freshGrader(r *Runner, a plan.Attempt) error {
	if err := errors.Join(os.RemoveAll(w.grader()), os.Mkdir(w.grader(), 0o700)); err != nil {
		return err
	}
	return copyFrom(r.Suite.Dir, a.Task.Grade.Files, w.grader())
}

func copyFrom(dir, folder, to string) error {
	if folder == "" {
		return nil
	}
	return files.Copy(filepath.Join(dir, folder), to)
}

// clear removes both folders.
func (w work) clear() error { return errors.Join(os.RemoveAll(w.dir), os.RemoveAll(w.temp)) }

// pack keeps the workspace as the agent left it.
func (w work) pack() error {
	file, err := os.OpenFile(w.packed(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(files.Pack(w.workspace(), file), file.Close())
}

// sums are the hashes of all that stays of an attempt.
func (w work) sums() (map[string]string, error) {
	all := map[string]string{}
	for _, name := range []string{PackedFile, LayerFile, ChangesFile, "output/stdout", "output/stderr", graderLog} {
		sum, err := sumOf(filepath.Join(w.dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = sum
	}
	return all, nil
}

// sumOf is the hash of a file of an attempt: a layer is mostly holes, whose size is not read.
func sumOf(path string) (string, error) {
	if filepath.Base(path) == LayerFile {
		return files.HashSparse(path)
	}
	return SumFile(path)
}

// SumFile is the SHA-256 of a file, in hex.
func SumFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// outputs are the two files that a sandbox writes to.
type outputs struct{ stdout, stderr *os.File }

func newOutputs(stdout, stderr string) (o outputs, err error) {
	if o.stdout, err = os.OpenFile(stdout, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
		return o, err
	}
	if o.stderr, err = os.OpenFile(stderr, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
		o.stdout.Close()
	}
	return o, err
}

func (o outputs) close() error { return errors.Join(o.stdout.Close(), o.stderr.Close()) }

// readBounded reads the beginning of a file.
func readBounded(path string, most int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var text bytes.Buffer
	_, err = io.Copy(&text, io.LimitReader(file, most))
	return text.String(), err
}
