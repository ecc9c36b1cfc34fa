package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"clove.run/clove/bench"
	"clove.run/clove/bench/files"
	"clove.run/clove/bench/plan"
)

// Verdict is what a verification found about one attempt.
type Verdict struct {
	Attempt string
	Wrong   []string // empty: it is as its result says
	Graded  bool     // it was graded again
}

// CheckHashes compares the files of an attempt's folder with its result.
func CheckHashes(dir string, result bench.Result) (wrong []string) {
	for _, name := range slices.Sorted(maps.Keys(result.Files.SHA256)) {
		if !filepath.IsLocal(name) || !filepath.IsLocal(result.Attempt) {
			return append(wrong, "it names a file outside of the folder")
		}
		sum, err := sumOf(filepath.Join(dir, bench.AttemptsDir, result.Attempt, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
			wrong = append(wrong, name+" is gone")
		case err != nil:
			wrong = append(wrong, name+" cannot be read")
		case sum != result.Files.SHA256[name]:
			wrong = append(wrong, name+" has changed")
		}
	}
	return wrong
}

// Regrade grades an attempt again from the files that were kept, in a new sandbox, and says
// what differs from its result.
func (r *Runner) Regrade(ctx context.Context, a plan.Attempt, before bench.Result) (wrong []string, err error) {
	w := r.work(a)
	w.log = filepath.Join(w.temp, graderLog)
	defer os.RemoveAll(filepath.Join(r.Dir, workDir))
	if err := errors.Join(os.RemoveAll(w.temp), os.MkdirAll(w.workspace(), 0o755)); err != nil {
		return nil, err
	}
	if e, _ := r.Suite.FindEnvironment(a.Task.Environment); !e.Kept() {
		packed, err := os.Open(w.packed())
		if err != nil {
			return nil, err
		}
		defer packed.Close()
		if err := files.Unpack(packed, w.workspace()); err != nil {
			return []string{"files.tar cannot be unpacked: " + err.Error()}, nil
		}
	}
	room, err := r.room(a)
	if err != nil {
		return nil, err
	}
	again := bench.Result{Record: before.Record}
	if err := r.grade(ctx, a, w, r.Host.CPUs[:room.CPUs], &again); err != nil {
		return nil, err
	}
	if again.Outcome == bench.Infrastructure {
		return nil, fmt.Errorf("%s: %s", a.ID(), again.Cause)
	}
	if again.Outcome != before.Outcome || again.Score != before.Score {
		wrong = append(wrong, fmt.Sprintf("graded again it is %s with score %.2f, and was %s with %.2f", again.Outcome, again.Score, before.Outcome, before.Score))
	}
	return wrong, nil
}
