package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// roleLoad is this binary as an agent that works.
const roleLoad = "load"

// work is one kind of load.
type work struct {
	name string
	do   func() error
}

// loads are what is measured inside, in this order.
var loads = []work{
	{"system calls (200 000)", callsALot},
	{"files of the base read (2000)", readsBase},
	{"files made, renamed, removed (5000)", changesFiles},
	{"programs executed (50)", startsPrograms},
}

// loadMain does every load once and prints what each took. The base is read once before that.
func loadMain([]string) error {
	if err := readsBase(); err != nil {
		return err
	}
	times := map[string]float64{}
	for _, l := range loads {
		ms, err := timed(l.do)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		times[l.name] = ms
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

// callsALot makes calls that do next to nothing in the kernel, some with an argument that a
// filter looks at.
func callsALot() error {
	for range 50_000 {
		unix.Getppid()
		unix.Getuid()
		if _, err := unix.FcntlInt(0, unix.F_GETFD, 0); err != nil {
			return err
		}
		if _, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// baseFiles is the number of files that are read.
const baseFiles = 2000

// readsBase looks at files of the base system, and reads the beginning of each.
func readsBase() error {
	count, buffer := 0, make([]byte, 4096)
	err := filepath.WalkDir("/usr/lib", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // not everything may be read
		}
		if _, err := os.Stat(path); err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return nil
		}
		_, _ = file.Read(buffer) // an empty file is at its end
		file.Close()
		if count++; count == baseFiles {
			return fs.SkipAll
		}
		return nil
	})
	if err == nil && count < baseFiles {
		err = fmt.Errorf("only %d files of the base could be read", count)
	}
	return err
}

// changesFiles makes files, and moves and removes them.
func changesFiles() error {
	dir, err := os.MkdirTemp("/tmp", "load")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, sub := range []string{"a/b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	from, to := filepath.Join(dir, "a/b/c/file"), filepath.Join(dir, "d/file")
	for range 5000 {
		if err := os.WriteFile(from, []byte("text"), 0o644); err != nil {
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
		if err := os.Remove(to); err != nil {
			return err
		}
	}
	return nil
}

func startsPrograms() error {
	for range 50 {
		if err := exec.Command(programTrue[0]).Run(); err != nil {
			return err
		}
	}
	return nil
}
