package kernel

import (
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/state"
	"clove.run/clove/store"
)

// committed says to the parts that wait for it that a transaction has ended.
func (k *Kernel) committed() {
	k.Ledger.Happened()
	k.blobs.Committed()
}

// holders are those of blobs that a run may read without naming a key: its mailbox, its own keys, and the jobs
// that it holds.
func holders(c *service.Call) ([]string, error) {
	jobs, err := lease.Holders(c.Tx, c.Run.Spec.ID, c.Now)
	return append(jobs, lease.RunBox(c.Run.Owner.UID, c.Run.Spec.ID).Holder(), state.Holders(c.Run)), err
}

// references holds those to blobs against the rows of all that refer.
func references(tx *store.KernelTx) ([]string, error) {
	return blob.Check(tx, lease.Holdings, state.Holdings)
}

// Check returns what is wrong with kernel.db and with the files of blobs, in words.
func (k *Kernel) Check() ([]string, error) {
	problems, err := k.store.Check()
	if err != nil {
		return nil, err
	}
	files, err := k.blobs.Check(references)
	return append(problems, files...), err
}

// Backup writes a copy of kernel.db to a file, and of the blobs to the folder beside it. Neither may be there.
func (k *Kernel) Backup(to string) error { return k.blobs.Backup(to, k.store.Backup) }
