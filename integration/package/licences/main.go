package main

import (
	"bufio"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// run prints nothing unless all parts have a licence.
func run(programs []string, to io.Writer) error {
	if len(programs) == 0 {
		return errors.New("no program is named (licences PROGRAM [PROGRAM])")
	}
	linked := map[string]*part{}
	for _, program := range programs {
		if err := addProgram(linked, program); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
	}
	all, err := licensed(linked)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(to)
	write(buffered, all)
	return buffered.Flush()
}

// licensed returns the parts in the order of their names, so that the output is the same
// for the same programs.
func licensed(linked map[string]*part) ([]*part, error) {
	all := make([]*part, 0, len(linked))
	for _, p := range linked {
		if err := p.check(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	slices.SortFunc(all, (*part).compare)
	return all, nil
}

// addProgram adds what one program is linked with.
func addProgram(linked map[string]*part, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	if err := addGo(linked, info.GoVersion); err != nil {
		return err
	}
	if err := addModules(linked, info); err != nil {
		return err
	}
	// Without cgo there is no C in it.
	if setting(info, "CGO_ENABLED") != "1" {
		return nil
	}
	return addLibraries(linked)
}
