package node

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"clove.run/clove/agent"
)

// units are those of the Debian package, which is made of the same files.
//
// units are the files that the Debian package installs too, so that both have the same
// text.
//
//go:embed units
var units embed.FS

const (
	serviceUnit = "clove.service"
	socketUnit  = "clove.socket"
	agentsUnit  = "clove-agents.service" // no process of its own: the cgroup of agents and guards
	sliceUnit   = "clove.slice"
)

var unitNames = []string{sliceUnit, agentsUnit, socketUnit, serviceUnit}

// unitMark is the first line of what Install wrote.
const unitMark = "# Written by clove node install; clove node uninstall takes it away.\n"

// clovedPrograms are cloved and the programs that it starts, which it looks for in its
// own directory.
var clovedPrograms = []string{"cloved", "clove", "clove-init", "clove-gate", "clove-loop", "clove-mcp", "clove-models", "clove-swap", "clove-tool", "clove-upstream"}

// plainPath is a path without characters that mean something else in a unit: %, spaces,
// quotes.
var plainPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/[A-Za-z0-9/._+-]*$`) })

// unitText is a unit of the package, changed for programs in another directory. The
// group clove does not exist on a node, where only root (clove-oci) calls cloved.
func unitText(name, programs string) ([]byte, error) {
	text, err := units.ReadFile("units/" + name)
	if err != nil {
		return nil, err
	}
	changed := strings.NewReplacer(
		"=/usr/sbin/cloved\n", "="+filepath.Join(programs, "cloved")+"\n",
		"=/usr/bin/clove ", "="+filepath.Join(programs, "clove")+" ",
		"SocketGroup=clove\n", "SocketGroup=root\n",
	).Replace(string(text))
	return []byte(unitMark + changed), nil
}

// checkPrograms finds now what systemd would only report as a failed service.
func (c Cloved) checkPrograms() error {
	if !plainPath().MatchString(c.Programs) {
		return &agent.Error{Kind: agent.KindInvalid, Step: "cloved", Message: "systemd would read " + c.Programs + " as something else",
			Hint: "put the programs into a directory of letters, digits and ._+- only"}
	}
	for _, name := range clovedPrograms {
		path := filepath.Join(c.Programs, name)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return &agent.Error{Kind: agent.KindNotFound, Step: "cloved", Message: "there is no program " + path, Err: err,
				Hint: "put all of clove's programs beside clove-oci, or omit cloved with --cloved no"}
		}
	}
	return nil
}

// unitFiles returns the units as they are, and as they are to be.
func (c Cloved) unitFiles() (old, made []file, err error) {
	for _, name := range unitNames {
		f, err := open(filepath.Join(c.Units, name))
		if err != nil {
			return nil, nil, err
		}
		old = append(old, f)
		if f.text, err = unitText(name, c.Programs); err != nil {
			return nil, nil, err
		}
		f.exists = true
		made = append(made, f)
	}
	return old, made, nil
}

// changed lists the units whose text differs.
func changed(old, made []file) (names []string) {
	for i, name := range unitNames {
		if !bytes.Equal(old[i].text, made[i].text) {
			names = append(names, name)
		}
	}
	return names
}

// storeAll stores as many as it can, and returns all errors.
func storeAll(files []file) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.store())
	}
	return err
}

// ownUnits reports whether Install wrote the units that exist; strange is the first one
// that it did not write. One of another origin is enough to leave all of them alone.
func (c Cloved) ownUnits() (own bool, strange string, err error) {
	for _, name := range unitNames {
		path := filepath.Join(c.Units, name)
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return false, "", err
		case !bytes.HasPrefix(text, []byte(unitMark)):
			return false, path, nil
		default:
			own = true
		}
	}
	return own, "", nil
}
