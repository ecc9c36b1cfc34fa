package main

import (
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/internal/initproto"
)

// TestSpentIsReadFromEachLayout: v1, v2, and a hybrid host, whose v2 tree has no
// controller.
func TestSpentIsReadFromEachLayout(t *testing.T) {
	t.Parallel()
	v1 := map[string]string{"cpuacct/cpuacct.usage": "9000000\n", "cpuacct/cpuacct.usage_user": "5000000\n",
		"cpuacct/cpuacct.usage_sys": "4000000\n", "memory/memory.max_usage_in_bytes": "300\n"}
	v2 := map[string]string{"cpu.stat": "usage_usec 8000\nuser_usec 6000\nsystem_usec 2000\nnr_periods 1\n", "memory.peak": "200\n"}
	hybrid := map[string]string{"unified/cpu.stat": "usage_usec 1\n"}
	for file, text := range v1 {
		hybrid[file] = text
	}
	ofV1 := initproto.Spent{CPUNS: 9e6, CPUUserNS: 5e6, CPUSystemNS: 4e6, MemoryPeakBytes: 300}
	for name, c := range map[string]struct {
		files map[string]string
		want  initproto.Spent
	}{
		"v1":                     {v1, ofV1},
		"hybrid":                 {hybrid, ofV1},
		"v2":                     {v2, initproto.Spent{CPUNS: 8e6, CPUUserNS: 6e6, CPUSystemNS: 2e6, MemoryPeakBytes: 200}},
		"v2 without memory.peak": {map[string]string{"cpu.stat": v2["cpu.stat"]}, initproto.Spent{CPUNS: 8e6, CPUUserNS: 6e6, CPUSystemNS: 2e6}},
		"nothing":                {nil, initproto.Spent{}},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := spent(root); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
