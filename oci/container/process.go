package container

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/opencontainers/selinux/go-selinux"
)

// CheckProcess refuses a process that could only fail after the container exists, with an
// error that names no cause. The messages are runc's, which callers compare.
func CheckProcess(p *specs.Process) error {
	switch {
	case p == nil:
		return errors.New("process property must not be empty")
	case p.Cwd == "":
		//lint:ignore ST1005 runc's words
		return errors.New("Cwd property must not be empty")
	case !filepath.IsAbs(p.Cwd):
		//lint:ignore ST1005 runc's words
		return errors.New("Cwd must be an absolute path")
	case len(p.Args) == 0:
		return errors.New("args must not be empty")
	case p.SelinuxLabel != "" && !selinux.GetEnabled():
		return errors.New("selinux label is specified in config, but selinux is disabled or not supported")
	}
	// libcontainer passes them on as JSON, which would replace the bytes.
	for _, text := range slices.Concat(p.Args, p.Env, []string{p.Cwd}) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%.64q is not UTF-8, which a container's process cannot have: rename what it names", text)
		}
	}
	return nil
}
