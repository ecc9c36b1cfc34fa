package store

import (
	"bufio"
	"fmt"
	"math"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// The amounts that the processes of TestKernelKilledInTheMiddle reserve and use each time.
const crashReserved, crashUsed = 3, 2

// spend reserves and settles from many goroutines until it is killed, and prints what is
// stored.
func spend(path string, _ *bufio.Reader) error {
	k, err := OpenKernel(path, patience)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for range 16 {
		s := &spender{k: k, uid: 7, run: agent.NewID()}
		s.note = func(tx *KernelTx, what string) error {
			_, err := AuditQueue.Add(tx, []byte(string(s.run)+" "+what))
			return firstOf(err, Answers.Put(tx, s.run, what, []byte("done")))
		}
		go func() { failed <- s.storm() }()
	}
	return <-failed
}

func (s *spender) storm() error {
	for {
		if ok, err := s.reserve(crashReserved); err != nil || !ok {
			return fmt.Errorf("reserved %v: %w", ok, err)
		}
		fmt.Println(s.run, "reserved", s.made)
		if err := s.settle(crashUsed); err != nil {
			return err
		}
		fmt.Println(s.run, "settled", s.made)
	}
}

// kill -9 in the middle: acknowledged changes are stored, each change is stored whole, and
// the file stays sound.
func TestKernelKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	k := openKernel(t, path)
	newSpender(t, k, 7, budget.MaxAmount)
	must(t, k.Close())
	var acknowledged []string
	for round := range 10 {
		spending := startChild(t, "spend", path)
		for range 5 + 7*round {
			acknowledged = append(acknowledged, spending.line(t))
		}
		must(t, spending.Process.Kill())
		spending.Wait()
		k := openKernel(t, path)
		if problems, err := k.Check(); err != nil || problems != nil {
			t.Fatalf("round %d: %q, %v", round, problems, err)
		}
		must(t, k.Read(func(tx *KernelTx) error { return wantWhole(t, tx, acknowledged) }))
		must(t, k.Close())
	}
}

// wantWhole fails unless each acknowledged change is in the file with its answer, and the
// user's account is the sum of all changes in the file.
func wantWhole(t *testing.T, tx *KernelTx, acknowledged []string) error {
	queue, err := AuditQueue.After(tx, 0, math.MaxInt)
	if err != nil {
		return err
	}
	stored := map[string]bool{}
	counts := map[string]int64{}
	for i, e := range queue {
		stored[string(e.Entry)] = true
		counts[strings.Fields(string(e.Entry))[1]]++
		if e.Number != uint64(i+1) {
			t.Fatalf("entry %d has the number %d", i+1, e.Number)
		}
	}
	for _, line := range acknowledged {
		run, what, _ := strings.Cut(line, " ")
		answer, err := Answers.Get(tx, agent.ID(run), what)
		if err != nil || answer == nil || !stored[line] {
			t.Fatalf("%q was acknowledged; stored %v, answer %q, %v", line, stored[line], answer, err)
		}
	}
	owner, err := Accounts.Get(tx, string(budget.OwnerKey(7)))
	if err != nil {
		return err
	}
	line := owner.Lines["n"]
	if open := counts["reserved"] - counts["settled"]; line.Used != crashUsed*counts["settled"] || line.Reserved != crashReserved*open {
		t.Fatalf("%+v after %v", line, counts)
	}
	return nil
}
