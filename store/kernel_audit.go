package store

import "math"

// AuditQueue has bytes below numbers that the bucket gives: an entry is signed as it is, and has no
// field with its number.
var AuditQueue = AuditRows{byteRows{names: []string{string(bucketAudit)}}}

// AuditRows is the type of AuditQueue.
type AuditRows struct{ byteRows }

// AuditEntry is an entry of the audit log that is in no segment yet. Numbers grow by one.
type AuditEntry struct {
	Number uint64
	Entry  []byte
}

// Add queues an entry of the audit log, in the transaction of what it is about, and
// returns its number.
func (AuditRows) Add(t *KernelTx, entry []byte) (uint64, error) {
	number, err := t.number(bucketAudit)
	if err != nil {
		return 0, err
	}
	return number, t.put(bucketAudit, numberKey(number), entry)
}

// Continue has Add give numbers above number only. It writes nothing where it does
// so anyway.
func (AuditRows) Continue(t *KernelTx, number uint64) (err error) {
	defer t.edge(&err)
	bucket := t.bucket(bucketAudit)
	if bucket.Sequence() >= number {
		return nil
	}
	t.wrote = true
	return bucket.SetSequence(number)
}

// After returns the queued entries with a higher number than after, oldest first, at
// most limit of them.
func (AuditRows) After(t *KernelTx, after uint64, limit int) ([]AuditEntry, error) {
	rows, err := t.rows(bucketAudit, nil, numberKey(after+1), limit)
	var queue []AuditEntry
	for _, r := range rows {
		number, _ := numbered(r.key)
		queue = append(queue, AuditEntry{Number: number, Entry: r.value})
	}
	return queue, err
}

// Count returns how many entries with a higher number than after are queued.
func (AuditRows) Count(t *KernelTx, after uint64) (int, error) {
	rows, err := t.rows(bucketAudit, nil, numberKey(after+1), math.MaxInt)
	return len(rows), err
}

// DeleteUpTo removes the entries up to a number: segments have them.
func (AuditRows) DeleteUpTo(t *KernelTx, upTo uint64) error {
	for {
		first, err := t.rows(bucketAudit, nil, nil, 1)
		if err != nil || len(first) == 0 {
			return err
		}
		if number, _ := numbered(first[0].key); number > upTo {
			return nil
		}
		if err := t.delete(bucketAudit, first[0].key); err != nil {
			return err
		}
	}
}
