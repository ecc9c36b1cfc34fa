package cgroups

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// exists reports whether dir has the file name.
func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// isGone reports whether err means that the cgroup or the file does not exist. A file that
// was open while its cgroup was removed reads ENODEV.
func isGone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// write writes value in one system call, because the kernel parses each write(2) to a
// control file as a whole. It never creates a file.
func write(dir, name, value string) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(value)
	return err
}

// readFields splits at lines and blanks alike: cgroup.procs has one field on a line,
// cgroup.controllers all on one, cpu.max two.
func readFields(dir, name string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	return strings.Fields(string(text)), err
}

// readPids returns the processes directly in dir. A process of a pid namespace that is not
// visible here has the number 0.
func readPids(dir string) ([]int, error) {
	fields, err := readFields(dir, "cgroup.procs")
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(fields))
	for _, field := range fields {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s/cgroup.procs: %w", dir, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// files reads control files for many figures and keeps the first error. An absent directory
// ("") or file makes the figure absent and is not an error.
type files struct{ err error }

// number reads a file that holds one number; nil when absent or "max".
func (f *files) number(dir, name string) *int64 {
	fields := f.fields(dir, name)
	if len(fields) != 1 || fields[0] == "max" {
		return nil
	}
	n, err := parseCount(fields[0])
	if err != nil {
		f.fail(dir, name, err)
		return nil
	}
	return &n
}

// keys reads a file of "key number" lines; nil when absent. Only flat keyed files have this
// form; io.stat, whose lines are nested, does not (cgroup-v2.rst).
func (f *files) keys(dir, name string) map[string]int64 {
	fields := f.fields(dir, name)
	if len(fields) == 0 {
		return nil
	}
	found := make(map[string]int64, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		n, err := parseCount(fields[i+1])
		if err != nil {
			f.fail(dir, name, err)
			return nil
		}
		found[fields[i]] = n
	}
	return found
}

// fields treats EOPNOTSUPP as absence: the file exists, but a cgroup of this type does not
// support it.
func (f *files) fields(dir, name string) []string {
	if dir == "" {
		return nil
	}
	fields, err := readFields(dir, name)
	if err != nil && !isGone(err) && !errors.Is(err, unix.EOPNOTSUPP) {
		f.fail(dir, name, err)
	}
	return fields
}

// fail keeps the first error only: the figures are read in a row, and what broke the first
// usually breaks the rest.
func (f *files) fail(dir, name string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("cannot read %s: %w", filepath.Join(dir, name), err)
	}
}

// parseCount parses an unsigned counter; a value above int64 becomes MaxInt64. The kernel
// counts in 64 bits without a sign, the record with one.
func parseCount(field string) (int64, error) {
	n, err := strconv.ParseUint(field, 10, 64)
	return int64(min(n, math.MaxInt64)), err
}

// at returns the figure called key, nil where there is none.
func at(found map[string]int64, key string) *int64 {
	n, ok := found[key]
	if !ok {
		return nil
	}
	return &n
}
