package audit

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/descriptor"
)

// Keys is a directory with the key that signs checkpoints:
//
//	DIR/current   the private key (x/mod's note format), for root alone
//	DIR/next      the key that a rotation has made and not put in place yet
//	DIR/public    the public keys, one a line, the oldest first
//
// A private key is never in DIR without its public one.
type Keys struct{ dir string }

// Names in a directory of keys.
const (
	currentName = "current"
	nextName    = "next"
	publicName  = "public"
)

// OpenKeys makes the directory and its first key if they do not exist.
func OpenKeys(dir string) (*Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	k := &Keys{dir}
	return k, descriptor.Exclusively(dir, func() error {
		_, err := os.Lstat(k.path(currentName))
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// The name is the origin of checkpoints too: it tells installations apart.
		private, public, err := note.GenerateKey(rand.Reader, "clove-audit/"+string(agent.NewID()))
		if err != nil {
			return err
		}
		return errors.Join(atomicfile.Write(k.path(publicName), 0o600, []byte(public+"\n")), atomicfile.Write(k.path(currentName), 0o600, []byte(private+"\n")))
	})
}

func (k *Keys) path(name string) string { return filepath.Join(k.dir, name) }

// Public returns the public keys, the oldest first. Whoever has the first one can check all
// of the log: records of kind rotate lead from one to the next.
func (k *Keys) Public() ([]string, error) {
	text, err := os.ReadFile(k.path(publicName))
	return strings.Fields(string(text)), err
}

func (k *Keys) signer(name string) (note.Signer, error) {
	text, err := os.ReadFile(k.path(name))
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s is not a key", k.path(name)) // without the text, which is the key
	}
	return signer, nil
}

// sign returns text, whose lines end, as a note signed with the current key.
func (k *Keys) sign(text func(origin string) string) ([]byte, error) {
	signer, err := k.signer(currentName)
	if err != nil {
		return nil, err
	}
	return note.Sign(&note.Note{Text: text(signer.Name())}, signer)
}

// prepare makes the next key, and the note in which the current key names it.
func (k *Keys) prepare() (signed []byte, err error) {
	current, err := k.signer(currentName)
	if err != nil {
		return nil, err
	}
	private, public, err := note.GenerateKey(rand.Reader, current.Name())
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(k.path(nextName), 0o600, []byte(private+"\n")); err != nil {
		return nil, err
	}
	return k.sign(func(string) string { return rotationText(public) })
}

const rotationHead = "clove audit key\n"

func rotationText(public string) string { return rotationHead + public + "\n" }

// install puts the next key, which the note names, in the place of the current one.
func (k *Keys) install(signed string) error {
	public, ok := rotationKey(signed)
	if !ok {
		return errors.New("the record names no key")
	}
	known, err := k.Public()
	if err != nil {
		return err
	}
	text := strings.Join(append(known, public), "\n") + "\n"
	return errors.Join(atomicfile.Write(k.path(publicName), 0o600, []byte(text)), os.Rename(k.path(nextName), k.path(currentName)), atomicfile.Sync(k.dir))
}

// rotationKey is the key that the note of a rotation names.
func rotationKey(signed string) (public string, ok bool) {
	text, _, ok := strings.Cut(signed, "\n\n")
	if !ok {
		return "", false
	}
	return strings.CutPrefix(text, rotationHead)
}

// settle ends a rotation that a kill cut: the next key counts if its record is the log's last.
func (k *Keys) settle(last Entry) error {
	next, err := k.signer(nextName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if public, ok := rotationKey(last.What); last.Kind == KindRotate && ok {
		if v, err := note.NewVerifier(public); err == nil && v.KeyHash() == next.KeyHash() {
			return k.install(last.What)
		}
	}
	return os.Remove(k.path(nextName))
}

// RotateKey replaces the signing key. The old one signs the new one, in a record of kind
// rotate, and signs nothing after that.
func (l *Log) RotateKey() error {
	_, err := l.hand(order{change: (*writer).rotateKey})
	return err
}

func (w *writer) rotateKey() error {
	if w.options.Keys == nil {
		return &agent.Error{Kind: agent.KindConflict, Step: step, Message: "this log has no keys"}
	}
	if err := w.checkpoint(); err != nil { // the old key's last word
		return err
	}
	signed, err := w.options.Keys.prepare()
	if err != nil {
		return err
	}
	if err := w.append(Entry{Kind: KindRotate, What: string(bytes.TrimSuffix(signed, []byte("\n")))}); err != nil {
		return err
	}
	if err := w.options.Keys.install(string(signed)); err != nil {
		return err
	}
	return w.checkpoint()
}
