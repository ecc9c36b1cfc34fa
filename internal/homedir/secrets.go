package homedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/beneath"
)

// places are files and folders of a home that hold credentials and nothing that a build needs.
var places = []string{
	".ssh", ".gnupg", ".password-store", ".aws", ".azure", ".kube", ".vault-token", ".pgpass", ".my.cnf", ".s3cfg", ".boto",
	".config/gcloud", ".config/gh/hosts.yml", ".config/hub", ".config/op", ".config/rclone", ".config/git/credentials", ".config/sops",
	".local/share/keyrings", ".local/share/kwalletd", ".cache/huggingface/token", ".mozilla", ".config/google-chrome", ".config/chromium",
	".docker/config.json", ".config/containers/auth.json", ".terraform.d/credentials.tfrc.json",
	".claude/.credentials.json", ".codex/auth.json", ".config/doctl", ".config/heroku", ".config/netlify", ".fly/config.yml",
}

// names are files that hold credentials wherever they are; those that are true only if
// their text has a token.
var names = map[string]bool{
	"credentials": false, "credentials.toml": false, "credentials.json": false, ".credentials": false, ".credentials.json": false,
	".netrc": false, "_netrc": false, ".git-credentials": false, ".pypirc": false, "auth.json": false, "auth.toml": false, ".htpasswd": false,
	"id_rsa": false, "id_dsa": false, "id_ecdsa": false, "id_ed25519": false, ".env": false,
	".npmrc": true, "npmrc": true, ".yarnrc": true, ".yarnrc.yml": true, ".pnpmrc": true, "bunfig.toml": true, ".bunfig.toml": true,
	"config.toml": true, "pip.conf": true, "uv.toml": true, "settings.xml": true, "gradle.properties": true, "nuget.config": true,
}

// token matches a password in an address, and a setting for a token that is not a variable's name.
var token = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)://[^\s/:@]+:[^\s/@]+@|^[^#;\n]*(_auth|token|password|secret)\w*["']?\s*[:=>]\s*["']?[^\s"'$<]`)
})

const (
	readMost  = 64 << 10 // of a file's text
	namesMost = 20000    // of a folder's entries
	shownMost = 5        // of the files that an error names
)

// Check refuses a folder that holds credentials. name is the path of dir in the home.
func Check(dir, name string) error {
	found, err := Secrets(dir, name)
	switch {
	case err != nil:
		return fmt.Errorf("cannot look for credentials: %w", err)
	case len(found) == 0:
		return nil
	case found[0] == ".":
		return ErrSecrets
	case len(found) > shownMost:
		found = append(found[:shownMost], "and more")
	}
	return fmt.Errorf("%w: %s", ErrSecrets, strings.Join(found, ", "))
}

// ErrSecrets means that a folder holds credentials.
var ErrSecrets = errors.New("credentials are in it")

// Secrets lists the files below dir that hold credentials, by their paths in dir, sorted; "." is
// dir itself. name is the path of dir in the home.
func Secrets(dir, name string) ([]string, error) {
	top, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	found := map[string]bool{}
	for _, place := range places {
		rest, below := strings.CutPrefix(place, name+"/")
		switch {
		case place == name || strings.HasPrefix(name, place+"/"):
			return []string{"."}, nil
		case below && exists(top, rest):
			found[rest] = true
		}
	}
	entries, err := list(top)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := inFolder(top, e.Name(), found); err != nil {
				return nil, err
			}
		} else if secret(top, e.Name()) {
			found[e.Name()] = true
		}
	}
	var all []string
	for at := range found {
		all = append(all, at)
	}
	slices.Sort(all)
	return all, nil
}

// inFolder adds those of a folder right below. One that the user may not read shows nothing
// inside either.
func inFolder(top *os.File, name string, found map[string]bool) error {
	sub, err := beneath.OpenChild(top, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return ignoring(err)
	}
	defer sub.Close()
	entries, err := list(sub)
	for _, e := range entries {
		if !e.IsDir() && secret(sub, e.Name()) {
			found[path.Join(name, e.Name())] = true
		}
	}
	return err
}

func ignoring(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// list stops behind namesMost entries: caches have many, and none of them is a credential.
func list(dir *os.File) ([]os.DirEntry, error) {
	entries, err := dir.ReadDir(namesMost)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

func exists(dir *os.File, at string) bool {
	file, err := beneath.OpenPlace(dir, at)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// secret reports whether a file of dir is a credential by its name, and where the name does not
// decide by its text. What cannot be read as a regular file has no text for the agent either.
func secret(dir *os.File, name string) bool {
	byText, known := names[name]
	if !byText {
		return known
	}
	file, err := beneath.OpenChild(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return false
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(file, readMost))
	return err != nil || token().Match(text)
}
