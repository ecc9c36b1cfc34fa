package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// options are the command line.
type options struct {
	rounds  int
	clove   string // path of the binary
	before  string // path of an earlier one, to compare starts with; empty for none
	only    string // the part to run; empty for all
	json    string // where the figures go
	scratch string // where directories for the runs are made: a disk, as clove's own would be
	cache   string // keeps the runc that was built
	gateway string // where npm has installed the gateway that models are compared with
	world   string // the script that makes a private world for an engine
}

// roles are what this binary does when it starts itself: as a client in the network
// part, in place of a shim, inside the environment of an engine, and as an agent that
// spends, asks models, or works on files.
var roles = map[string]func(args []string) error{"client": clientMain, roleLife: lifeMain, roleEngine: engineMain, roleLedger: ledgerMain, roleAsker: askerMain, roleMailer: mailerMain, roleLoad: loadMain}

func main() {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		if err := roles[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[1], err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 30, "counted rounds of each measurement")
	flag.StringVar(&o.clove, "clove", "bin/clove", "the clove to measure")
	flag.StringVar(&o.before, "before", "", "an earlier clove, whose start is compared in the part kernel")
	flag.StringVar(&o.only, "only", "", "measure one part: "+strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(parts)), func(name string) bool { return name == "" }), ", "))
	flag.StringVar(&o.json, "json", "build/bench.json", "where the figures go")
	flag.StringVar(&o.scratch, "scratch", "/var/tmp", "where clove's and runc's state lies meanwhile")
	flag.StringVar(&o.cache, "cache", "build/bench", "where runc is built")
	flag.StringVar(&o.gateway, "gateway", "build/clients/gateway/node_modules", "the gateway that the part models compares with (integration/install.sh gateway)")
	flag.StringVar(&o.world, "world", "integration/testdata/container.sh", "what makes the world in which docker is measured")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures, writes the figures as JSON, and prints the tables.
func run(o options) error {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.close()
	results, err := b.measure(o.only)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.json), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(o.json, append(text, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Print(results)
	return nil
}

// bench has what all measurements share.
type bench struct {
	clove, runc    string
	before         string // see options
	self           string // this binary
	scratch, cache string
	world, gateway string // see options
	rounds         int
	thread         *nsthread.Thread // starts every command, where the host's root is bound
	serial         int              // of the last run
}

// newBench makes the scratch directory on a disk, as clove's own state would be.
func newBench(o options) (b *bench, err error) {
	b = &bench{rounds: max(o.rounds, 1)}
	if o.before != "" {
		if b.before, err = filepath.Abs(o.before); err != nil {
			return nil, err
		}
	}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	for _, path := range []struct {
		named string
		to    *string
	}{{o.clove, &b.clove}, {o.cache, &b.cache}, {o.world, &b.world}, {o.gateway, &b.gateway}} {
		if *path.to, err = filepath.Abs(path.named); err != nil {
			return nil, err
		}
	}
	if b.thread, err = nsthread.Start(unix.CLONE_NEWNS); err != nil {
		return nil, fmt.Errorf("cannot leave the host's mounts (root is needed): %w", err)
	}
	if b.scratch, err = os.MkdirTemp(o.scratch, "clove-bench-"); err != nil {
		b.thread.Close()
		return nil, err
	}
	// The roots of sandboxes are unprivileged users on the host and must be able to
	// pass through.
	return b, os.Chmod(b.scratch, 0o711)
}

// close ends the thread first: its mount namespace holds the bind mount in scratch.
func (b *bench) close() {
	b.thread.Close()
	if err := os.RemoveAll(b.scratch); err != nil {
		fmt.Fprintln(os.Stderr, "bench: cannot clean up:", err)
	}
}

// environment is that of every command. clove's state is in scratch, so that the
// machine's own runs are neither seen nor slowed down.
func (b *bench) environment() []string {
	return append(os.Environ(), "CLOVE_ROOT="+filepath.Join(b.scratch, "state"), "CLOVE_RUN_DIR="+filepath.Join(b.scratch, "run"))
}
