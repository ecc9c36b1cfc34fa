package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/tlog"

	"clove.run/clove/agent"
)

// Exported is what belongs to a file of records.
type Exported struct {
	Checkpoint []byte // a new signed note over all records of the log
	Begin      []byte // where the log begins; nil: at record 1. Verify wants it in FILE.begin
	First      uint64 // the first record
	Last       uint64
}

// Export verifies the log in dir, and writes its records to w as they are. Verify accepts a
// file of them with the checkpoint. A damaged log is not exported: the error is a *Problem.
// It may run beside the writer.
func Export(dir string, keys *Keys, w io.Writer) (e Exported, err error) {
	lines := bufio.NewWriterSize(w, 64<<10)
	v, err := verified(dir, keys, false, func(p position, _ record) error {
		_, err := lines.Write(append(p.line, '\n'))
		return err
	})
	if err != nil {
		return e, err
	}
	defer v.stored.close()
	if err := lines.Flush(); err != nil {
		return e, err
	}
	e.First, e.Last, e.Begin = v.removed+1, v.tip.tree.size, v.beginNote
	e.Checkpoint, err = v.sign(keys)
	return e, err
}

// verified walks along a log that must be sound, and keeps all hashes if asked to. Without an
// error the caller closes the verifier's stored hashes.
func verified(dir string, keys *Keys, keep bool, each func(position, record) error) (*verifier, error) {
	public, err := keys.Public()
	if err != nil {
		return nil, err
	}
	v := &verifier{each: each, keep: keep}
	if err := v.prepare(dir, public, nil); err != nil {
		return nil, err
	}
	err = v.walk(v.segments)
	if err == nil {
		err = v.end(dir)
	}
	if err != nil {
		v.stored.close()
		return nil, err
	}
	return v, nil
}

func (v *verifier) sign(keys *Keys) ([]byte, error) {
	root, err := v.tip.tree.root()
	if err != nil {
		return nil, err
	}
	return keys.signCheckpoint(v.tip.tree.size, root)
}

// Proof shows that a record is in a log, without the other records.
type Proof struct {
	Version    int         `json:"v"`
	Number     uint64      `json:"number"`
	Record     string      `json:"record"`     // its line, without the end
	Checkpoint string      `json:"checkpoint"` // a signed note over size and root
	Hashes     []tlog.Hash `json:"hashes"`     // RFC 6962's audit path, base64, from the leaf up
}

// Prove verifies the log in dir, and proves that it has the record with a number, against a
// new checkpoint. It holds 64 bytes in memory for each record of the log.
func Prove(dir string, keys *Keys, number uint64) (Proof, error) {
	proof := Proof{Version: Version, Number: number}
	v, err := verified(dir, keys, true, func(p position, r record) error {
		if r.Number == number {
			proof.Record = string(p.line)
		}
		return nil
	})
	if err != nil {
		return proof, err
	}
	defer v.stored.close()
	if proof.Record == "" {
		return proof, &agent.Error{Kind: agent.KindNotFound, Step: step, Message: fmt.Sprintf("there is no record %d: the log has those from %d to %d", number, v.removed+1, v.tip.tree.size)}
	}
	signed, err := v.sign(keys)
	if err != nil {
		return proof, err
	}
	proof.Checkpoint = string(signed)
	proof.Hashes, err = tlog.ProveRecord(int64(v.tip.tree.size), int64(number-1), v)
	if err == nil {
		_, err = VerifyProof(proof, v.public) // the stored hashes of removed records may be damaged
	}
	return proof, err
}

// ReadHashes implements tlog.HashReader with the hashes that were kept on the way, and the
// stored ones of removed records.
func (v *verifier) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	first := tlog.StoredHashCount(int64(v.removed))
	found := make([]tlog.Hash, 0, len(indexes))
	for _, index := range indexes {
		switch {
		case index >= first+int64(len(v.hashes)):
			return nil, fmt.Errorf("the tree has no hash %d", index)
		case index >= first:
			found = append(found, v.hashes[index-first])
		case v.stored == nil:
			return nil, errors.New("the hashes of the removed records are not there")
		default:
			stored, err := v.stored.ReadHashes([]int64{index})
			if err != nil {
				return nil, err
			}
			found = append(found, stored...)
		}
	}
	return found, nil
}

// ReadProof is VerifyProof of a proof's JSON.
func ReadProof(text []byte, keys []string) (Entry, error) {
	var proof Proof
	if err := json.Unmarshal(text, &proof); err != nil {
		return Entry{}, fmt.Errorf("it is not a proof: %w", err)
	}
	return VerifyProof(proof, keys)
}

// VerifyProof checks a proof with public keys alone, and returns the record.
func VerifyProof(proof Proof, keys []string) (Entry, error) {
	trust, err := newTrust(keys)
	if err != nil {
		return Entry{}, err
	}
	claimed, err := trust.checkpoint([]byte(proof.Checkpoint))
	if err != nil {
		return Entry{}, fmt.Errorf("the proof's checkpoint is not good: %w", err)
	}
	r, err := parse([]byte(proof.Record))
	if err != nil || r.Number != proof.Number {
		return Entry{}, errors.New("the proof has no record with its number")
	}
	if err := tlog.CheckRecord(proof.Hashes, int64(claimed.size), claimed.root, int64(r.Number-1), r.hash); err != nil {
		return Entry{}, fmt.Errorf("record %d is not in the log of the checkpoint: %w", r.Number, err)
	}
	return r.Entry, nil
}
