package audit

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
)

// RunDir is where the log of a run lies that has none of the host's to write to. dir is the
// host's log.
func RunDir(dir string, run agent.ID) string { return filepath.Join(dir, runsName, string(run)) }

// Unlinked lists the runs with a log of their own that no record covers yet, live ones
// included.
func Unlinked(dir string) ([]agent.ID, error) { return runsIn(filepath.Join(dir, runsName)) }

func runsIn(dir string) (runs []agent.ID, err error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		if run := agent.ID(name.Name()); run.Valid() && name.IsDir() {
			runs = append(runs, run)
		}
	}
	return runs, err
}

// Link ends the log of a run and writes a record of kind link with its last hash and its
// number of records. From then on Verify covers it with the host's, so its files are kept,
// without those that can be made again. The error is of KindBusy if the run is alive. If it
// is repeated after a kill, a second record says the same.
func (l *Log) Link(run agent.ID, owner uint32) error {
	if !run.Valid() {
		return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: fmt.Sprintf("%q is not a run's id", run)}
	}
	from := RunDir(l.dir, run)
	if _, err := os.Lstat(from); err != nil {
		return err
	}
	own, err := Open(from, RunOptions()) // what a killed run left is recovered first
	if err != nil {
		return err
	}
	if err := own.Close(); err != nil {
		return err
	}
	end := own.w.tip
	entry := Entry{Kind: KindLink, Owner: owner, Run: run, Count: end.tree.size, Digest: hex.EncodeToString(end.hash[:])}
	if _, err := l.AppendEnd(entry); err != nil {
		return err
	}
	to := filepath.Join(l.dir, linkedName)
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	err = errors.Join(os.Rename(from, filepath.Join(to, string(run))), atomicfile.Sync(to), atomicfile.Sync(filepath.Dir(from)))
	for _, name := range []string{hashesName, lockName} {
		err = errors.Join(err, os.Remove(filepath.Join(to, string(run), name)))
	}
	return err
}

// verifyRuns verifies the logs of runs: those that records link, and those that none does yet.
func (v *verifier) verifyRuns(path string) error {
	for _, link := range v.links {
		dir, err := linkedDir(path, link.Run)
		if errors.Is(err, fs.ErrNotExist) {
			if v.head == nil {
				continue // an exported file has the records of the host's log only
			}
			return inRun(link.Run, &Problem{Kind: Missing, Message: fmt.Sprintf("record %d links it, and it is not there", link.Number)})
		}
		if err == nil {
			err = v.verifyRun(dir, link.Run, &link)
		}
		if err != nil {
			return err
		}
	}
	runs, err := Unlinked(path)
	if err != nil && v.head != nil {
		return err
	}
	for _, run := range runs {
		// A run that is linked meanwhile goes: the record that links it was not read.
		if err := v.verifyRun(RunDir(path, run), run, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// linkedDir is where a linked run's log lies. Link may have been killed before it moved it.
func linkedDir(path string, run agent.ID) (string, error) {
	dir := filepath.Join(path, linkedName, string(run))
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		dir = RunDir(path, run)
		_, err = os.Stat(dir)
	}
	return dir, err
}

func (v *verifier) verifyRun(dir string, run agent.ID, link *Entry) error {
	own := verifier{}
	err := own.prepare(dir, nil, nil)
	if err == nil {
		err = own.verify(dir)
	}
	if err == nil && link != nil {
		err = own.linkedBy(*link)
	}
	v.runs++
	return inRun(run, err)
}

// linkedBy compares a run's log with the record of the host's that links it.
func (v *verifier) linkedBy(link Entry) error {
	have, hash := v.tip.tree.size, v.tip.hash
	switch {
	case have < link.Count:
		return &Problem{Kind: Truncated, Number: have + 1, Message: fmt.Sprintf("it ends behind record %d, and the host's record %d links %d", have, link.Number, link.Count)}
	case have > link.Count:
		return &Problem{Kind: Inserted, Number: link.Count + 1, Message: fmt.Sprintf("the host's record %d links %d records", link.Number, link.Count)}
	case hex.EncodeToString(hash[:]) != link.Digest:
		return &Problem{Kind: Rewritten, Number: have, Message: fmt.Sprintf("its last hash is not that of the host's record %d", link.Number)}
	}
	return nil
}

func inRun(run agent.ID, err error) error {
	var problem *Problem
	if errors.As(err, &problem) {
		problem.Run = run
	}
	return err
}
