package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// checkpoint is a tree head: the text of a note is three lines (origin, size, base64 root),
// as in the format tlog-checkpoint of c2sp.org. The origin is the key's name.
type checkpoint struct {
	origin string
	size   uint64
	root   tlog.Hash
}

func (c checkpoint) text() string { return fmt.Sprintf("%s\n%d\n%s\n", c.origin, c.size, c.root) }

// parseCheckpoint reads the text of a note, whose signatures it does not look at.
func parseCheckpoint(signed []byte) (c checkpoint, err error) {
	lines := strings.SplitN(string(signed), "\n", 4)
	if len(lines) < 4 {
		return c, errNoCheckpoint
	}
	size, err := strconv.ParseUint(lines[1], 10, 63)
	root, bad := tlog.ParseHash(lines[2])
	if err != nil || bad != nil {
		return c, errNoCheckpoint
	}
	return checkpoint{lines[0], size, root}, nil
}

var errNoCheckpoint = errors.New("it is not a checkpoint of a clove audit log")

// signCheckpoint returns the note for a tree of size records.
func (k *Keys) signCheckpoint(size uint64, root tlog.Hash) ([]byte, error) {
	return k.sign(func(origin string) string { return checkpoint{origin, size, root}.text() })
}

// savedCheckpoint is a line of the file of checkpoints.
type savedCheckpoint struct {
	Size uint64    `json:"size"`
	Time time.Time `json:"time"`
	Note string    `json:"note"`
}

// Checkpoint signs the log as it is now, and returns the note.
func (l *Log) Checkpoint() (signed []byte, err error) {
	_, err = l.hand(order{change: func(w *writer) error {
		if err := w.checkpoint(); err != nil {
			return err
		}
		saved, err := savedCheckpoints(w.path(checkpointsName))
		if err == nil && len(saved) > 0 {
			signed = []byte(saved[len(saved)-1].Note)
		}
		return err
	}})
	return signed, err
}

// checkpoint signs all that is durable, unless the last checkpoint covers it.
func (w *writer) checkpoint() error {
	size := w.tip.tree.size
	if w.options.Keys == nil || size == w.signed {
		return nil
	}
	root, err := w.tip.tree.root()
	if err != nil {
		return err
	}
	signed, err := w.options.Keys.signCheckpoint(size, root)
	if err != nil {
		return err
	}
	line, err := json.Marshal(savedCheckpoint{size, time.Now().UTC(), string(signed)})
	if err != nil {
		return err
	}
	if err := appendLine(w.path(checkpointsName), line); err != nil {
		return storage("a checkpoint", err)
	}
	w.signed, w.signedTime = size, time.Now()
	return errors.Join(w.hashes.file.Sync(), w.head.sync())
}

// checkpointWhenDue is tried again later if it fails: the records are safe without it.
func (w *writer) checkpointWhenDue() {
	if w.tip.tree.size >= w.signed+w.options.CheckpointRecords || time.Since(w.signedTime) >= w.options.CheckpointAfter {
		_ = w.checkpoint()
	}
}

// appendLine adds a line durably, or nothing.
func appendLine(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		_, err = file.Write(append(line, '\n'))
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil && info != nil {
		err = errors.Join(err, file.Truncate(info.Size()))
	}
	return errors.Join(err, file.Close())
}

// savedCheckpoints reads the whole lines of the file.
func savedCheckpoints(path string) ([]savedCheckpoint, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var saved []savedCheckpoint
	for i := 1; err == nil; i++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			break
		}
		var c savedCheckpoint
		if json.Unmarshal(line, &c) != nil {
			return nil, fmt.Errorf("line %d of %s is not a checkpoint", i, path)
		}
		saved, text = append(saved, c), rest
	}
	return saved, err
}

// covered finds what the newest stored checkpoint covers. The next one signs all records
// before it too, so that one must be good, agree with the log, and not be far behind.
func (w *writer) covered(removed uint64) error {
	if w.options.Keys == nil {
		return nil // it signs nothing
	}
	w.signed, w.signedTime = removed, time.Now()
	saved, err := savedCheckpoints(w.path(checkpointsName))
	if err != nil {
		return damaged(checkpointsName, err.Error())
	}
	if len(saved) > 0 {
		newest := saved[len(saved)-1]
		if err := w.agrees(newest); err != nil {
			return err
		}
		w.signed = newest.Size
	}
	return uncovered(w.signed, w.tip.tree.size)
}

// agrees holds a stored checkpoint to the keys and to the stored hashes.
func (w *writer) agrees(saved savedCheckpoint) error {
	public, err := w.options.Keys.Public()
	if err != nil {
		return err
	}
	trust, err := newTrust(public)
	if err != nil {
		return err
	}
	claimed, err := trust.checkpoint([]byte(saved.Note))
	switch {
	case err != nil || claimed.size != saved.Size:
		return damaged(checkpointsName, "the newest stored checkpoint is not good")
	case claimed.size > w.tip.tree.size:
		return &Problem{Kind: Truncated, Number: w.tip.tree.size + 1, Message: fmt.Sprintf("the log ends behind record %d, and a stored checkpoint covers %d", w.tip.tree.size, claimed.size)}
	}
	if root, err := tlog.TreeHash(int64(claimed.size), w.hashes); err != nil || root != claimed.root {
		return &Problem{Kind: Rewritten, Number: claimed.size, Message: "the stored hashes up to this one are not those of the newest stored checkpoint"}
	}
	return nil
}

// trust is the keys that may have signed a checkpoint.
type trust struct{ verifiers []note.Verifier }

func newTrust(public []string) (*trust, error) {
	t := &trust{}
	for _, key := range public {
		v, err := note.NewVerifier(key)
		if err != nil {
			return nil, fmt.Errorf("%q is not a public key", key)
		}
		t.verifiers = append(t.verifiers, v)
	}
	return t, nil
}

// open checks a note's signature and returns its text.
func (t *trust) open(signed []byte) (text string, err error) {
	opened, err := note.Open(signed, note.VerifierList(t.verifiers...))
	if err != nil {
		return "", err
	}
	return opened.Text, nil
}

// checkpoint opens a checkpoint's note.
func (t *trust) checkpoint(signed []byte) (checkpoint, error) {
	text, err := t.open(signed)
	if err != nil {
		return checkpoint{}, err
	}
	return parseCheckpoint([]byte(text))
}
