package main

import (
	"strings"
	"testing"
)

func TestTheTableHasOnlyTheContainers(t *testing.T) {
	const table = "UID        PID  PPID CMD\nroot         1     0 init\n5           17     1 sleep 18\nroot        18     1 PID\n\n"
	got, err := onlyOf([]int{17, 99}, table)
	if want := "UID        PID  PPID CMD\n5           17     1 sleep 18\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for table, want := range map[string]string{
		"":                      "couldn't find PID field in ps output",
		"UID CMD\nroot init\n":  "couldn't find PID field in ps output",
		"PID CMD\nroot init\n":  "unable to parse pid",
		"PPID CMD\nroot init\n": "couldn't find PID field in ps output",
	} {
		if _, err := onlyOf(nil, table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", table, err)
		}
	}
}

func TestWhatAsksOfAContainerNeedsOne(t *testing.T) {
	root := t.TempDir()
	for _, args := range []string{"ps none", "pause none", "resume none", "events none", "events --stats none", "update none", "update --resources /none none"} {
		if got := try(t, append([]string{"--root", root}, strings.Fields(args)...)...); got.status != 1 || got.logged != "container does not exist" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestCheckpointsAreRefusedWhateverIsAsked: Podman takes a --help that succeeds for support of
// checkpoints.
func TestCheckpointsAreRefusedWhateverIsAsked(t *testing.T) {
	for _, args := range []string{"checkpoint", "checkpoint --help", "checkpoint --image-path x one", "restore one", "restore -h"} {
		name, _, _ := strings.Cut(args, " ")
		if got := try(t, strings.Fields(args)...); got.status != 1 || !strings.HasPrefix(got.logged, "clove-oci does not "+name+" containers: ") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
