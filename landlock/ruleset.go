package landlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ErrOld is a kernel whose Landlock would refuse every rename between directories.
var ErrOld = errors.New("this kernel's Landlock knows no renames between directories")

// Version is that of the kernel's interface. It fails where Landlock is not there, or too
// old.
func Version() (int, error) {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, fmt.Errorf("the kernel has no Landlock, or it is not switched on: %w", err)
	}
	if version < versionRefer {
		return 0, ErrOld
	}
	return version, nil
}

// Lacks says in words what a version cannot hold; empty: nothing that is used here.
func Lacks(version int) string {
	var missing []string
	for _, row := range []struct {
		since int
		what  string
	}{{versionTruncate, "truncation"}, {versionTCP, "TCP ports"}, {versionDevice, "ioctl on devices"}} {
		if version < row.since {
			missing = append(missing, row.what)
		}
	}
	return strings.Join(missing, ", ")
}

// Make makes the ruleset, which the caller closes. open opens a rule's path with O_PATH; a
// path that does not exist allows nothing.
func (r Rules) Make(open func(path string) (*os.File, error)) (*os.File, error) {
	version, err := Version()
	if err != nil {
		return nil, err
	}
	attr := ll.RulesetAttr{}
	attr.HandledAccessFS, attr.HandledAccessNet = handled(version)
	if !r.NoTCP {
		attr.HandledAccessNet = 0
	}
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a Landlock ruleset: %w", err)
	}
	ruleset := os.NewFile(uintptr(fd), "landlock")
	for _, rule := range r.Files {
		if err := rule.add(fd, version, open); err != nil {
			ruleset.Close()
			return nil, fmt.Errorf("cannot make a Landlock rule for %s: %w", rule.Path, err)
		}
	}
	return ruleset, nil
}

func (r Rule) add(ruleset, version int, open func(path string) (*os.File, error)) error {
	place, err := open(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer place.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(place.Fd()), &stat); err != nil {
		return err
	}
	attr := ll.PathBeneathAttr{AllowedAccess: r.allowed(version, stat.Mode&unix.S_IFMT == unix.S_IFDIR), ParentFd: int(place.Fd())}
	if attr.AllowedAccess == 0 { // the kernel takes no empty rule
		return nil
	}
	return ll.LandlockAddPathBeneathRule(ruleset, &attr, 0)
}
