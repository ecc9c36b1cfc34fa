package sealed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// Credential is the name of the key among systemd's credentials.
const Credential = "clove-secret-key"

// DefaultFile is where the key is without a credential.
const DefaultFile = "/etc/clove/secret.key"

// Keeper seals and opens values with the key of this host.
type Keeper struct {
	path string

	mu  sync.Mutex // guards the following
	key *age.X25519Identity
}

// NewKeeper uses a key, which is read when it is needed. path is its file where there is no credential.
func NewKeeper(path string) *Keeper { return &Keeper{path: path} }

// Seal encrypts a value. It makes the key if there is none.
func (k *Keeper) Seal(value []byte) ([]byte, error) {
	key, err := k.get(true)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, key.Recipient())
	if err == nil {
		_, err = w.Write(value)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, errors.New("cannot encrypt the secret") // an error of age's could have a part of it
	}
	return out.Bytes(), nil
}

// Open decrypts a value.
func (k *Keeper) Open(sealed []byte) ([]byte, error) {
	key, err := k.get(false)
	if err != nil {
		return nil, err
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), key)
	if err != nil {
		return nil, k.refuse(errors.New("it was encrypted with another key"), "put the key back with which it was set, or set the secret again")
	}
	value, err := io.ReadAll(r)
	if err != nil {
		return nil, k.refuse(errors.New("its value is damaged"), "set the secret again")
	}
	return value, nil
}

func (k *Keeper) refuse(err error, hint string) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "secrets", Message: "cannot use the key of secrets", Err: err, Hint: hint}
}

func (k *Keeper) get(makes bool) (*age.X25519Identity, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil {
		return k.key, nil
	}
	text, err := k.read()
	if errors.Is(err, fs.ErrNotExist) && makes {
		text, err = k.create()
	}
	if err != nil {
		return nil, err
	}
	key, err := parse(text)
	if err != nil {
		return nil, k.refuse(err, "its file has one line, which begins with AGE-SECRET-KEY-")
	}
	// What a process with the key has read and written is in its memory: it leaves no core dump.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	k.key = key
	return key, nil
}

// parse reads a key as age-keygen writes it: lines that begin with # are comments. The error has nothing of the text.
func parse(text []byte) (*age.X25519Identity, error) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			if key, err := age.ParseX25519Identity(line); err == nil {
				return key, nil
			}
			break
		}
	}
	return nil, errors.New("it is no key of age's")
}

// keyBytes bounds the file.
const keyBytes = 4 << 10

// read reads the credential or the file. One that others may read or replace is refused.
func (k *Keeper) read() ([]byte, error) {
	if credentials := os.Getenv("CREDENTIALS_DIRECTORY"); credentials != "" {
		if text, err := os.ReadFile(filepath.Join(credentials, Credential)); err == nil {
			return text, nil
		}
	}
	file, err := os.OpenFile(k.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "secrets", Message: "there is no key of secrets", Err: err, Hint: "clove secret set makes " + k.path}
	}
	if err != nil {
		return nil, k.refuse(err, "")
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, k.refuse(err, "")
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Uid != uint32(os.Geteuid()) || stat.Mode&0o077 != 0 {
		return nil, k.refuse(fmt.Errorf("others than root may read or replace %s", k.path), "chown root "+k.path+"; chmod 600 "+k.path)
	}
	return io.ReadAll(io.LimitReader(file, keyBytes))
}

// create makes the key's file. It is whole or not there, also behind a loss of power.
func (k *Keeper) create() ([]byte, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(k.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, k.refuse(err, "")
	}
	text := []byte("# the key of clove's secrets: without it they cannot be read (docs/secrets.md)\n" + key.String() + "\n")
	if err := writeNew(dir, k.path, text); err != nil {
		return nil, k.refuse(err, "")
	}
	return k.read() // another process may have been first
}

// writeNew makes a file by a link, which replaces nothing.
func writeNew(dir, path string, text []byte) error {
	file, err := os.CreateTemp(dir, ".secret.key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
