package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
)

// sqliteProgram spends in a SQLite file. It takes orders as this binary does.
//
//go:embed kernel_sqlite.py
var sqliteProgram string

// sqlite is a process beside the agent: Go has no SQLite of its own.
type sqlite struct {
	in  io.Writer
	out *bufio.Reader
}

func openSQLite(folder string) (*sqlite, error) {
	return startSQLite(sqliteProgram, folder, auditEntry)
}

func startSQLite(program string, args ...string) (*sqlite, error) {
	cmd := exec.Command("python3", append([]string{"-c", program}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &sqlite{in, bufio.NewReader(out)}, cmd.Start() // it ends with the sandbox
}

func (s *sqlite) spend(callers, turns int) (took []float64, err error) {
	if err := json.NewEncoder(s.in).Encode([]int{callers, turns}); err != nil {
		return nil, err
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return nil, errors.Join(errors.New("the program of SQLite has ended"), err)
	}
	return took, json.Unmarshal(line, &took)
}
