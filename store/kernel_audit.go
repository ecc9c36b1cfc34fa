package store

import "math"

// auditQueue has bytes below numbers that the bucket gives: an entry is signed as it is, and no
// field of it says its number.
var auditQueue = byteRows{names: []string{string(bucketAudit)}}

// AuditEntry is an entry of the audit log that is in no segment yet. Numbers grow by one.
type AuditEntry struct {
	Number uint64
	Entry  []byte
}

// Record queues an entry of the audit log, in the transaction of what it is about, and
// returns its number.
func (t *KernelTx) Record(entry []byte) (uint64, error) {
	number, err := t.number(bucketAudit)
	if err != nil {
		return 0, err
	}
	return number, t.put(bucketAudit, numberKey(number), entry)
}

// ContinueAudit has Record give numbers above number only. It writes nothing where it does
// so anyway.
func (t *KernelTx) ContinueAudit(number uint64) (err error) {
	defer t.edge(&err)
	bucket := t.bucket(bucketAudit)
	if bucket.Sequence() >= number {
		return nil
	}
	t.wrote = true
	return bucket.SetSequence(number)
}

// AuditQueue returns the queued entries with a higher number than after, oldest first, at
// most limit of them.
func (t *KernelTx) AuditQueue(after uint64, limit int) ([]AuditEntry, error) {
	rows, err := t.rows(bucketAudit, nil, numberKey(after+1), limit)
	var queue []AuditEntry
	for _, r := range rows {
		number, _ := numbered(r.key)
		queue = append(queue, AuditEntry{Number: number, Entry: r.value})
	}
	return queue, err
}

// CountAudit returns how many entries with a higher number than after are queued.
func (t *KernelTx) CountAudit(after uint64) (int, error) {
	rows, err := t.rows(bucketAudit, nil, numberKey(after+1), math.MaxInt)
	return len(rows), err
}

// ForgetAudit removes the entries up to a number: segments have them.
func (t *KernelTx) ForgetAudit(upTo uint64) error {
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
