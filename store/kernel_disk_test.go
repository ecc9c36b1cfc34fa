package store

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"clove.run/clove/kernel/budget"
)

// everyRow writes at least one row to each bucket of kernel.db.
func everyRow(tx *KernelTx) error {
	const run = "00000000000000aa"
	_, err := AuditQueue.Add(tx, []byte(`{"entry":1}`))
	return firstOf(err,
		putUse(tx, budget.OwnerKey(7), 3),
		putUse(tx, budget.NamespaceKey(7, "acme/x"), 2),
		Reservations.Put(tx, &budget.Reservation{ID: "1", Run: run, Service: "s", Amounts: budget.Amounts{"n": 5}, Made: time.Unix(1, 0).UTC()}),
		DailySums.Count(tx, 7, budget.Amounts{"n": 5, "m": 6}, aDay),
		Answers.Put(tx, run, "key", []byte("answer")), Answers.PutUsers(tx, run, "key2", nil),
		Grants.Put(tx, newGrant("g", run, "", 0)), Grants.Put(tx, newGrant("h", "x", "g", 1)))
}

// The rows of kernel.db are on people's disks. This golden file has each byte of a few of each
// bucket: a difference needs a migration.
func TestKernelRowsAreGolden(t *testing.T) {
	t.Parallel()
	const golden = "testdata/kernel.golden.txt"
	k := openKernel(t, kernelFile(t))
	inTx(t, k, everyRow)
	var text strings.Builder
	must(t, k.view(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
			fmt.Fprintf(&text, "%s\n", name)
			return bucket.ForEach(func(key, value []byte) error {
				fmt.Fprintf(&text, "\t%q %q\n", key, value)
				return nil
			})
		})
	}))
	if *update {
		must(t, os.WriteFile(golden, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if text.String() != string(want) {
		t.Errorf("the rows are\n%s", text.String())
	}
	for part := range strings.SplitSeq(text.String(), "\n") {
		if part != "" && !strings.HasPrefix(part, "\t") && !strings.Contains(text.String(), part+"\n\t") {
			t.Errorf("everyRow has no row of %s", part)
		}
	}
}
