package main

import (
	"fmt"
	"path/filepath"
	"slices"
)

// The kinds of starts. The second one is the same program once more: what its ratio is off
// 1 is noise.
const (
	startNow     = "clove run"
	startControl = "clove run, once more"
	startBefore  = "clove run, earlier"
	startSocket  = "clove run --agent-socket"
)

// startPeers are the commands whose starts are compared, each with a state of its own.
func (b *bench) startPeers() (peers []peer) {
	add := func(name, clove string, flags ...string) {
		dir := filepath.Join(b.scratch, fmt.Sprintf("start-%d", len(peers)))
		argv := append([]string{clove, "--root", dir + "-state", "--run-dir", dir + "-run", "run", "--rm"}, flags...)
		peers = append(peers, peer{name: name, command: func(_ *bench, _ string, program ...string) []string {
			return slices.Concat(argv, []string{"--"}, program)
		}})
	}
	add(startNow, b.clove)
	add(startControl, b.clove)
	add(startSocket, b.clove, "--agent-socket")
	if b.before != "" {
		add(startBefore, b.before)
	}
	return peers
}

// measureStarts compares whole commands without cloved: a run that shares nothing with one
// that has a socket, and with an earlier clove, which had none.
func (b *bench) measureStarts(s *shared) error {
	peers := b.startPeers()
	if b.before == "" {
		s.Absent[startBefore] = "no earlier clove was named (make bench ONLY=kernel BEFORE=PATH)"
	}
	samples := make([][]sample, len(peers))
	for round := range warmups + b.rounds {
		for i, p := range peers {
			taken, err := b.runTogether(p, whatWhole, 1)
			if err != nil {
				return err
			}
			if round >= warmups {
				samples[i] = append(samples[i], taken...)
			}
		}
	}
	for _, column := range []struct {
		what string
		of   func([]sample) []float64
	}{{"a start", times}, {"a start's CPU time", cpuTimes}} {
		for i, p := range peers {
			f := kernelFigure{What: column.what, Peer: p.name, Unit: unitMS, Values: spreadOf(column.of(samples[i]))}
			if i > 0 {
				f.Ratio = ratioOf(column.of(samples[i]), column.of(samples[0]), 1)
			}
			s.Figures = append(s.Figures, f)
		}
	}
	return nil
}
