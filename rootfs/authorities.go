package rootfs

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// Files of Config.Authority in Config.Services.
const (
	AuthorityFile = "ca.pem"        // its certificate
	BundleFile    = "ca-bundle.pem" // those of the root, and it; Mount writes it
)

// AuthorityFiles are where distributions keep the certificates of authorities in one file.
var AuthorityFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, to which others lead
	"/etc/pki/tls/cert.pem",                             // Fedora's OpenSSL
	"/etc/pki/tls/cacert.pem",
	"/etc/ssl/certs/ca-bundle.crt",
	"/etc/ssl/cert.pem", // Alpine's OpenSSL
}

// authorityBytes bounds such a file.
const authorityBytes = 8 << 20

// authorityOp shows the authorities of the root with one more behind them, wherever the root has a file of authorities. So
// programs that read no variable trust it, too. The root's files stay as they are below the mounts. The text is that of the first of them:
// where a distribution has several, they are the same.
type authorityOp struct{ Services string }

func (s authorityOp) String() string { return "authority of " + s.Services }

func (s authorityOp) run(b *builder) error {
	files, err := b.authorities()
	if err != nil {
		return err
	}
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	own, err := os.ReadFile(filepath.Join(s.Services, AuthorityFile))
	if err != nil {
		return err
	}
	var text []byte
	if len(files) > 0 {
		if text, err = io.ReadAll(io.LimitReader(files[0], authorityBytes)); err != nil {
			return err
		}
		text = append(text, '\n') // a file may end without one
	}
	bundle := filepath.Join(s.Services, BundleFile)
	if err := os.WriteFile(bundle, append(text, own...), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(bundle, 0o644); err != nil { // whatever the umask is
		return err
	}
	for _, file := range files {
		if err := b.cover(file, bundle); err != nil {
			return err
		}
	}
	return nil
}

// authorities opens the root's files with the agent's ids: a link in their place may lead to a file of a mount that the agent must not
// read. Several names may lead to one file, which is opened once. None: the root has no authorities.
func (b *builder) authorities() (files []*os.File, err error) {
	agent := nsthread.Identity{UID: b.cfg.HostID + b.cfg.AgentUID, GID: b.cfg.HostID + b.cfg.AgentGID}
	var infos []os.FileInfo
	err = rightsOf(&agent, nsthread.StartAs, func() error {
		for _, name := range AuthorityFiles {
			file, info, err := b.openAuthorities(name)
			switch {
			case err != nil: // it is not there, or nothing that the agent could read
			case slices.ContainsFunc(infos, func(other os.FileInfo) bool { return os.SameFile(info, other) }):
				file.Close()
			default:
				files, infos = append(files, file), append(infos, info)
			}
		}
		return nil
	})
	return files, err
}

// openAuthorities opens a regular file inside. Links are resolved there and lead nowhere else.
func (b *builder) openAuthorities(name string) (*os.File, os.FileInfo, error) {
	found, err := b.openInside(name, 0)
	if err != nil {
		return nil, nil, err
	}
	defer found.Close()
	info, err := found.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > authorityBytes) {
		err = unix.EINVAL
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := openRead(found)
	return file, info, err
}

// cover shows a file of the host over one inside.
func (b *builder) cover(target *os.File, with string) error {
	clone, err := b.clone(with, idMap{}, cloneFlags{ReadOnly: true})
	if err != nil {
		return err
	}
	defer clone.Close()
	return attach(clone, fdPath(target))
}
