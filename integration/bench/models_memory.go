package main

import (
	"maps"
	"slices"
)

// heldStreams are open while memory is measured: half of what clove lets an agent have, so
// that those which end beside the next order are not in its way.
const heldStreams = maxStreams / 2

// heldMemory is what a peer's processes take, in KiB.
type heldMemory struct {
	peer       string
	byProgram  map[string]float64 // before
	idle, open float64            // all of it, before and with the streams
}

// measureMemory opens streams at each peer and leaves them open.
func measureMemory(peers []*modelPeer) ([]figure, error) {
	var all []heldMemory
	for _, p := range peers {
		if p.processes == nil {
			continue
		}
		m, err := p.hold()
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return memoryFigures(all), nil
}

// hold measures before and with open streams, and then has the client end them.
func (p *modelPeer) hold() (m heldMemory, err error) {
	m.peer = p.name
	if m.byProgram, m.idle, err = residentByProgram(p.processes()); err != nil {
		return m, err
	}
	if _, err := p.run(modelOrder{Model: modelHeld, Stream: true, Callers: heldStreams, Turns: 1, Hold: true}); err != nil {
		return m, err
	}
	if _, m.open, err = residentByProgram(p.processes()); err != nil {
		return m, err
	}
	_, err = p.run(modelOrder{Model: modelSwift, Callers: 1, Turns: 1})
	return m, err
}

// residentByProgram adds up proportional set sizes, in KiB.
func residentByProgram(pids []int) (by map[string]float64, all float64, err error) {
	sizes, err := residentKiB(pids, "Pss:")
	by = map[string]float64{}
	for i, kib := range sizes {
		by[programOfProcess(pids[i])] += kib
		all += kib
	}
	return by, all, err
}

// memoryFigures are the rows of all peers, with the programs of those that have several.
func memoryFigures(all []heldMemory) (figures []figure) {
	s := samples{}
	for _, m := range all {
		s.add(whatProcesses, m.peer, m.idle/1024)
		s.add(whatOpenStream, m.peer, (m.open-m.idle)/heldStreams)
	}
	figures = comparison{what: whatProcesses, unit: unitMiB, base: peerGateway}.figures(namesOf(modelKinds), s)
	for _, m := range all {
		if len(m.byProgram) < 2 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(m.byProgram)) {
			figures = append(figures, figure{What: whatProcesses, Peer: "  of that, " + name, Unit: unitMiB, Values: spreadOf([]float64{m.byProgram[name] / 1024})})
		}
	}
	return append(figures, comparison{what: whatOpenStream, unit: unitKiB, base: peerGateway}.figures(namesOf(modelKinds), s)...)
}
