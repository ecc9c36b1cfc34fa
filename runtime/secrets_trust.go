package runtime

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/rootfs"
	"clove.run/clove/secrets"
)

// rootsBytes bounds a file of authorities.
const rootsBytes = 8 << 20

// openRoots opens the file of the host's authorities; nil: there is none.
func openRoots() *os.File {
	for _, name := range rootfs.AuthorityFiles {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() <= rootsBytes {
			return file
		}
		file.Close()
	}
	return nil
}

// trust puts the run's authority and files of programs where the agent finds them, and returns the variables that lead programs to the
// authority, behind those of the agent's root. Without an authority there are none.
func (l secretsStart) trust(ca []byte, programs map[string]string) (env []string, err error) {
	dir := l.runtime.paths.services(l.spec.ID)
	if err := makeServices(dir); err != nil {
		return nil, err
	}
	files := maps.Clone(programs)
	if files == nil {
		files = map[string]string{}
	}
	if len(ca) > 0 {
		files[rootfs.AuthorityFile] = string(ca)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil { // whatever the umask is
			return nil, err
		}
	}
	if len(ca) == 0 {
		return nil, nil
	}
	for _, name := range secrets.BundleVariables {
		env = append(env, name+"="+path.Join(rootfs.ServicesDir, rootfs.BundleFile))
	}
	return append(env, secrets.AuthorityVariable+"="+path.Join(rootfs.ServicesDir, rootfs.AuthorityFile)), nil
}

// unset are the variables that the spec does not set.
func (l secretsStart) unset(env []string) []string {
	return slices.DeleteFunc(env, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.ContainsFunc(l.spec.Env, func(set string) bool { return strings.HasPrefix(set, name+"=") })
	})
}

// makeServices makes the directory that the agent sees as rootfs.ServicesDir.
func makeServices(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o755) // whatever the umask is
}
