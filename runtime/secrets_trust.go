package runtime

import (
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/beneath"
	"clove.run/clove/rootfs"
	"clove.run/clove/secrets"
)

// Files of the run's authority, in the directory of its services.
const (
	caFile     = "ca.pem"        // its certificate
	bundleFile = "ca-bundle.pem" // the system's, and it
)

// rootsFiles are where distributions keep the certificates of authorities.
var rootsFiles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// rootsBytes bounds such a file.
const rootsBytes = 8 << 20

// openRoots opens the file of the authorities that a root has; nil: there is none.
func openRoots(root string) *os.File {
	dir, err := os.Open(root)
	if err != nil {
		return nil
	}
	defer dir.Close()
	for _, name := range rootsFiles {
		file, err := beneath.Open(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
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

// systemRoots are the authorities that a root has; nil: none.
func systemRoots(root string) ([]byte, error) {
	file := openRoots(root)
	if file == nil {
		return nil, nil
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, rootsBytes))
}

// trust puts the run's authority, behind those of the agent's root, and files of programs where the agent finds them, and returns the
// variables that lead programs to the authority. Without an authority there are none.
func (l secretsStart) trust(ca []byte, programs map[string]string) (env []string, err error) {
	dir := l.runtime.paths.services(l.spec.ID)
	if err := makeServices(dir); err != nil {
		return nil, err
	}
	root := "/"
	if l.spec.Files.Rootfs != "" {
		root = l.spec.Files.Rootfs
	}
	files := maps.Clone(programs)
	if len(ca) > 0 {
		system, err := systemRoots(root)
		if err != nil {
			return nil, err
		}
		if len(system) > 0 && system[len(system)-1] != '\n' {
			system = append(system, '\n')
		}
		if files == nil {
			files = map[string]string{}
		}
		files[caFile], files[bundleFile] = string(ca), string(append(system, ca...))
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
		env = append(env, name+"="+path.Join(rootfs.ServicesDir, bundleFile))
	}
	return append(env, secrets.AuthorityVariable+"="+path.Join(rootfs.ServicesDir, caFile)), nil
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
