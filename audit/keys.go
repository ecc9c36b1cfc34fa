package audit

import (
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
//	DIR/public    the public key
//
// A private key is never in DIR without its public one.
type Keys struct{ dir string }

// Names in a directory of keys.
const (
	currentName = "current"
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

// Public returns the public keys.
func (k *Keys) Public() ([]string, error) {
	text, err := os.ReadFile(k.path(publicName))
	return strings.Fields(string(text)), err
}

func (k *Keys) signer() (note.Signer, error) {
	text, err := os.ReadFile(k.path(currentName))
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s is not a key", k.path(currentName)) // without the text, which is the key
	}
	return signer, nil
}

// sign returns text, whose lines end, as a note signed with the current key.
func (k *Keys) sign(text func(origin string) string) ([]byte, error) {
	signer, err := k.signer()
	if err != nil {
		return nil, err
	}
	return note.Sign(&note.Note{Text: text(signer.Name())}, signer)
}
