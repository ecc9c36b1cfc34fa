package rootfs

import (
	"context"
	"fmt"
	"maps"
	"path"

	"golang.org/x/sys/unix"
)

// settleMoves rewrites the redirects of a kept layer's upper directory after renames that were
// applied: the kernel looks for those directories where the host has them now. The layer is not
// in use as an overlay.
func settleMoves(upper, lower string) error {
	at, err := openBeneath(upper, 0, nil)
	if err != nil {
		return err
	}
	defer at.close()
	below, err := openBeneath(lower, 0, nil)
	if err != nil {
		return err
	}
	defer below.close()
	m, err := movesIn(context.Background(), at, overlayMark)
	if err != nil {
		return err
	}
	before := maps.Clone(m.from)
	m.settle(below)
	for rel, was := range before {
		now, settled := m.settled[rel]
		if !settled {
			now = m.from[rel].from
		}
		if now == was.from {
			continue
		}
		if err := at.redirect(rel, now); err != nil {
			return fmt.Errorf("cannot settle the renamed directory %s: %w", printable(rel), err)
		}
	}
	return nil
}

// redirect sets the attribute of the directory rel.
func (b beneath) redirect(rel, to string) error {
	dir, err := b.openDir(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Fsetxattr(int(dir.Fd()), "trusted.overlay.redirect", []byte(path.Join("/", to)), 0)
}
