package main

import (
	"fmt"
	"path/filepath"
	"slices"
)

// The kinds of starts. The second one is the same program once more: the distance of its ratio
// from 1 is noise.
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
func (b *bench) measureStarts(t *table) error {
	peers := b.startPeers()
	if b.before == "" {
		t.Absent[startBefore] = "no earlier clove was named (make bench ONLY=kernel BEFORE=PATH)"
	}
	const what = "a start"
	s, err := b.inRounds(func(_ int, s samples) error {
		for _, p := range peers {
			took, cpu, err := b.runTogether(p, whatWhole, 1)
			if err != nil {
				return err
			}
			s.add(what, p.name, took...)
			s.add(cpuOf(what), p.name, cpu...)
		}
		return nil
	})
	t.Figures = append(t.Figures, figuresOf(peers, startNow, what, s)...)
	return err
}
