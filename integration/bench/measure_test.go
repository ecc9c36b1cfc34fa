package main

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/nsthread"
)

// unprivileged is a bench that cannot hide its mounts, and need not.
func unprivileged(t *testing.T) *bench {
	t.Helper()
	thread, err := nsthread.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(thread.Close)
	return &bench{rounds: 2, thread: thread, scratch: t.TempDir()}
}

func row(t *testing.T, name string) peer {
	t.Helper()
	i := slices.IndexFunc(peers, func(p peer) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("no peer %q", name)
	}
	return peers[i]
}

func TestPeersTakeTurnsAndAreComparedToTheReference(t *testing.T) {
	b := unprivileged(t)
	var order []string
	watched := func(name string) peer {
		p := row(t, "bare exec")
		inner := p.command
		p.name = name
		p.command = func(b *bench, id string, program ...string) []string {
			order = append(order, name)
			return inner(b, id, program...)
		}
		return p
	}
	figures, err := b.compare([]peer{watched("other"), watched(reference)}, reference, whatFirst, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(order); i += 4 {
		if want := []string{"other", "other", reference, reference}; !slices.Equal(order[i:i+4], want) {
			t.Fatalf("round %d ran %v", i/4, order[i:i+4])
		}
	}
	if want := (warmups + b.rounds) * 4; len(order) != want {
		t.Errorf("%d runs, not %d", len(order), want)
	}
	if len(figures) != 4 {
		t.Fatalf("%d lines, not two of times and two of CPU times", len(figures))
	}
	for _, f := range figures {
		if f.Values.Samples != 4 || f.Values.P50 <= 0 || (f.Ratio == nil) != (f.Peer == reference) {
			t.Errorf("%+v", f)
		}
	}
}

func TestAFailingRunFailsTheMeasurement(t *testing.T) {
	b := unprivileged(t)
	broken := peer{name: "broken", command: func(*bench, string, ...string) []string {
		return []string{"/bin/sh", "-c", "echo no such thing >&2; exit 3"}
	}}
	_, err := b.compare([]peer{broken}, reference, whatWhole, 1)
	if err == nil || !strings.Contains(err.Error(), "broken") || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("%v", err)
	}
}

func TestEachRunHasItsOwnName(t *testing.T) {
	b := unprivileged(t)
	first, second := b.prepare(row(t, "docker"), programTrue), b.prepare(row(t, "docker"), programTrue)
	if slices.Equal(first.Args, second.Args) {
		t.Errorf("both are %v", first.Args)
	}
}
