package control

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/models/link"
)

// SecretsDir is where the keys of providers are.
const SecretsDir = "/etc/clove/secrets"

// ReadSecret returns the key of a name: from systemd's directory of credentials, if there is
// one of that name, else from dir. A file that others may read is refused, and no error says
// what is in it.
func ReadSecret(dir, name string) (string, error) {
	if credentials := os.Getenv("CREDENTIALS_DIRECTORY"); credentials != "" {
		if text, err := os.ReadFile(filepath.Join(credentials, name)); err == nil {
			return key(text)
		}
	}
	path := filepath.Join(dir, name)
	refuse := func(err error, hint string) error {
		return &agent.Error{Kind: agent.KindInvalid, Step: "models", Message: "cannot use the key " + name, Err: err, Hint: hint}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", refuse(err, "write it into "+path+", mode 0600")
	}
	defer file.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return "", refuse(err, "")
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Uid != 0 || stat.Mode&0o077 != 0 {
		return "", refuse(fmt.Errorf("others than root may read or replace %s", path), "chown root "+path+"; chmod 600 "+path)
	}
	text, err := io.ReadAll(io.LimitReader(file, link.MaxKey+3))
	if err != nil {
		return "", refuse(err, "")
	}
	return key(text)
}

// key is a file's content without the end of its line. Anything else that cannot be in an
// HTTP header is refused.
func key(text []byte) (string, error) {
	k := strings.TrimRight(string(text), "\r\n")
	bad := strings.ContainsFunc(k, func(r rune) bool { return r < '!' || r > '~' })
	if k == "" || bad || len(k) > link.MaxKey {
		return "", &agent.Error{Kind: agent.KindInvalid, Step: "models", Message: "a key is empty, too long, or has characters that no header can have", Hint: "the file has the key alone, in one line"}
	}
	return k, nil
}
