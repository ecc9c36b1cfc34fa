package store

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// putUse stores an account in which n is used.
func putUse(t *KernelTx, key budget.Key, n int64) error {
	return Accounts.Put(t, &budget.Account{Key: key, Lines: map[budget.Dimension]*budget.Line{"n": {Unlimited: true, Used: n, Peak: n}}})
}

// used is what putUse stored; 0 where there is no account.
func used(t *KernelTx, key budget.Key) (int64, error) {
	a, err := Accounts.Get(t, string(key))
	if err != nil || a == nil {
		return 0, err
	}
	return a.Lines["n"].Used, nil
}

// wantUsed fails unless the file says that n is used.
func wantUsed(t *testing.T, k *Kernel, key budget.Key, n int64) {
	t.Helper()
	must(t, k.Read(func(tx *KernelTx) error {
		if got, err := used(tx, key); err != nil || got != n {
			t.Errorf("%s: %d used (%v), want %d", key, got, err, n)
		}
		return nil
	}))
}

// count adds one.
func count(key budget.Key) func(*KernelTx) error {
	return func(tx *KernelTx) error {
		n, err := used(tx, key)
		if err != nil {
			return err
		}
		return putUse(tx, key, n+1)
	}
}

// openKernelNew opens a new kernel.db that is closed and checked when the test ends.
func openKernelNew(t testing.TB) *Kernel {
	t.Helper()
	k, err := OpenKernel(t.TempDir()+"/state/kernel.db", patience)
	must(t, err)
	t.Cleanup(func() {
		problems, err := k.Check()
		must(t, err)
		for _, problem := range problems {
			t.Error("check:", problem)
		}
		must(t, k.Close())
	})
	return k
}

// Changes of many goroutines happen one after the other, and none is lost.
func TestUpdatesAreSerial(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	k.db.NoSync = true
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 20 {
				if err := k.Update(count("7")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	wantUsed(t, k, "7", 64*20)
}

var errRefused = errors.New("refused")

// A function that fails changes nothing, and the others of its batch go on; also where it
// had written, which it should not.
func TestAFailedChangeIsAlone(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	k.db.NoSync = true
	var all sync.WaitGroup
	for i := range 120 {
		all.Go(func() {
			key := budget.OwnerKey(uint32(i % 3))
			err := k.Update(func(tx *KernelTx) error {
				switch i % 3 {
				case 1:
					return errRefused
				case 2:
					return firstOf(count(key)(tx), errRefused)
				}
				return count(key)(tx)
			})
			if want := i%3 != 0; want != errors.Is(err, errRefused) || !want && err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	wantUsed(t, k, "0", 40)
	wantUsed(t, k, "1", 0)
	wantUsed(t, k, "2", 0)
}

// A function that ends its goroutine, as a failing test does, gets an error instead of an
// answer that never comes, and the next change is served.
func TestAChangeThatNeverReturns(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	for range 3 {
		if err := k.Update(func(tx *KernelTx) error {
			count("6")(tx)
			runtime.Goexit()
			return nil
		}); err == nil {
			t.Error("it is stored")
		}
		must(t, k.Update(count("5")))
	}
	wantUsed(t, k, "6", 0)
	wantUsed(t, k, "5", 3)
}

// A panic reaches the caller of Update, and no other caller.
func TestAPanicIsTheCallers(t *testing.T) {
	t.Parallel()
	k := openKernelNew(t)
	k.db.NoSync = true
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			defer func() {
				if value := recover(); fmt.Sprint(value) != map[bool]string{true: "mine", false: "<nil>"}[i%2 == 0] {
					t.Errorf("%d: panic %v", i, value)
				}
			}()
			err := k.Update(func(tx *KernelTx) error {
				err := count("5")(tx)
				if i%2 == 0 {
					panic("mine")
				}
				return err
			})
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	wantUsed(t, k, "5", 30)
}

// A damaged row is an error of the call that reads it.
func TestADamagedRowIsAnError(t *testing.T) {
	t.Parallel()
	k := openKernel(t, kernelFile(t))
	must(t, k.Update(func(tx *KernelTx) error { return tx.put(bucketAccounts, []byte("3"), []byte("{")) }))
	err := k.Update(count("3"))
	if known := wantKind(t, err, agent.KindInternal); known.Hint == "" || !errors.Is(err, errDamaged) {
		t.Errorf("%v (%s)", err, known.Hint)
	}
	must(t, k.Update(count("4")))
}

func TestAClosedKernelRefuses(t *testing.T) {
	t.Parallel()
	k := openKernel(t, kernelFile(t))
	must(t, k.Update(count("4")))
	must(t, k.Close())
	wantKind(t, k.Update(count("4")), agent.KindBusy)
}
