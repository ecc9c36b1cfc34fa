package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The comparison is fair only if the bundle asks for the same work as clove does.
func TestBundleDoesTheSameWork(t *testing.T) {
	config, err := bundleConfig("/root-of-it", programTrue)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"type":"user"`, `"type":"pid"`, `"type":"mount"`, `"type":"uts"`, `"type":"ipc"`, `"type":"cgroup"`, `"type":"network"`,
		`{"containerID":0,"hostID":1879048192,"size":65536}`, `"limit":1073741824`, `"limit":512`,
		`{"hard":4096,"soft":4096,"type":"RLIMIT_NOFILE"}`, `"defaultAction":"SCMP_ACT_ERRNO"`, `"noNewPrivileges":true`,
		`"path":"/root-of-it"`, `"destination":"/sys/fs/cgroup"`, `"args":["/bin/true"]`,
	} {
		if !strings.Contains(string(encoded), want) {
			t.Errorf("the bundle lacks %s", want)
		}
	}
}

func TestEachProgramHasItsBundle(t *testing.T) {
	b := &bench{scratch: "/scratch"}
	var dirs []string
	for _, program := range programs {
		dirs = append(dirs, b.bundle(program))
	}
	slices.Sort(dirs)
	if len(slices.Compact(dirs)) != len(programs) {
		t.Errorf("programs share a bundle: %v", dirs)
	}
}

func TestCommandsEndWithTheProgram(t *testing.T) {
	b := &bench{scratch: "/scratch", clove: "/clove", runc: "/runc"}
	for _, p := range peers {
		argv := p.command(b, "id-1", programDate...)
		if p.name == reference || p.name == peerOCI {
			if want := "/scratch/bundle-date"; !slices.Contains(argv, want) || argv[len(argv)-1] != "id-1" {
				t.Errorf("%v does not run %s", argv, want)
			}
			continue
		}
		if len(argv) < 2 || !slices.Equal(argv[len(argv)-2:], programDate) {
			t.Errorf("%s runs %v", p.name, argv)
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "one\n": "one", "one\ntwo\n\n": "two"} {
		if got := lastLine([]byte(text)); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
