//go:build root

package oci

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/testhost"
)

var (
	memoryMax = file{"memory", "memory.limit_in_bytes", "memory.max"}
	pidsMax   = file{"pids", "pids.max", "pids.max"}
	cpuMax    = file{"cpu", "cpu.cfs_quota_us", "cpu.max"}
)

// TestAnUpdateStaysWithinTheAnnotations: an engine may go below them and back, not above.
// Without an annotation there is no bound.
func TestAnUpdateStaysWithinTheAnnotations(t *testing.T) {
	r := newRuntime(t)
	r.Must("run", "--detach", "--bundle", r.Bundle("exec sleep 1000", func(s *specs.Spec) {
		s.Annotations = map[string]string{"run.clove.limits.memory": "64M", "run.clove.limits.pids": "32", "run.clove.limits.cpus": "0.5"}
	}), "bound")
	r.Must("run", "--detach", "--bundle", r.Bundle("exec sleep 1000"), "free")
	for _, row := range []struct {
		args, beyond string // above the bound: the end of the annotation's name
		file         file
		want         string // the value that the kernel has for the container without annotations
	}{
		{"--memory 32M", "", memoryMax, "33554432"},
		{"--memory 64M", "", memoryMax, "67108864"},
		{"--memory 65M", "memory", memoryMax, "68157440"},
		{"--memory 128M --pids-limit 8", "memory", memoryMax, "134217728"},
		{"--pids-limit 8", "", pidsMax, "8"},
		{"--pids-limit 33", "pids", pidsMax, "33"},
		{"--pids-limit -1", "pids", pidsMax, "max"},
		{"--pids-limit 32", "", pidsMax, "32"},
		{"--cpu-quota 25000", "", cpuMax, "25000"},
		{"--cpu-quota 50001", "cpus", cpuMax, "50001"},
		{"--cpu-period 50000 --cpu-quota 25001", "cpus", cpuMax, "25001"},
		{"--cpu-period 200000 --cpu-quota 100000", "", cpuMax, "100000"},
		{"--cpu-period 100000", "cpus", cpuMax, "100000"},
		{"--memory -1 --memory-swap -1", "memory", file{}, ""},
	} {
		args := append([]string{"update"}, strings.Fields(row.args)...)
		r.Must(append(args, "free")...)
		if row.want != "" {
			if got, _, _ := strings.Cut(limit(t, r, "free", row.file), " "); got != row.want {
				t.Errorf("%s: the free one has %s", row.args, got)
			}
		}
		before := limits(t, r, "bound")
		got := r.Do(append(args, "bound")...)
		after := limits(t, r, "bound")
		switch {
		case row.beyond == "" && (got.Status != 0 || !strings.Contains(after, row.want)):
			t.Errorf("%s: %+v, %s", row.args, got, after)
		case row.beyond != "" && (got.Status != 1 || !strings.Contains(got.Err, "annotation run.clove.limits."+row.beyond+": the update would exceed it") || after != before):
			t.Errorf("%s: %+v, %s became %s", row.args, got, before, after)
		}
	}
	for _, id := range []string{"bound", "free"} {
		r.Must("delete", "--force", id)
	}
}

// limits prints everything that the test above changes.
func limits(t *testing.T, r *ocitest.Runtime, id string) string {
	t.Helper()
	var all []string
	for _, f := range []file{memoryMax, pidsMax, cpuMax} {
		all = append(all, limit(t, r, id, f))
	}
	return strings.Join(all, " ")
}

// TestAnUpdateByFile: as containerd's shim passes it.
func TestAnUpdateByFile(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	if got := r.DoWith(strings.NewReader(`{"memory":{"limit":33554432},"pids":{"limit":20}}`), "update", "--resources", "-", id); got.Status != 0 {
		t.Errorf("%+v", got)
	}
	path := filepath.Join(r.Directory(), "resources.json")
	if err := os.WriteFile(path, []byte(`{"cpu":{"quota":30000,"period":100000}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Must("update", id, "--resources", path)
	if got := limits(t, r, id); !strings.HasPrefix(got, "33554432 20 30000") {
		t.Errorf("the limits are %s", got)
	}
	for want, args := range map[string][]string{
		"invalid value for memory":     {"--memory", "much"},
		"invalid value for cpu-period": {"--cpu-period", "-1"},
		"no such file":                 {"--resources", "/none"},
		"cannot unmarshal":             {"--resources", "testdata/list.json"},
		"Intel RDT/CAT is not enabled": {"--l3-cache-schema", "L3:0=f"},
		"Intel RDT/MBA is not enabled": {"--mem-bw-schema", "MB:0=20"},
	} {
		if got := r.Do(append([]string{"update", id}, args...)...); got.Status != 1 || !strings.Contains(got.Err, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := limits(t, r, id); !strings.HasPrefix(got, "33554432 20 30000") {
		t.Errorf("after what was refused, the limits are %s", got)
	}
	r.Must("kill", id, "KILL")
	r.Await("the end", func() bool { return r.State(id).Status == specs.StateStopped })
	if got := r.Do("update", "--pids-limit", "3", id); got.Status != 1 || !strings.Contains(got.Err, "container not running") {
		t.Errorf("of a stopped one: %+v", got)
	}
}

// TestEventsTellOfUseAndOfWantOfMemory: the events end with the container.
func TestEventsTellOfUseAndOfWantOfMemory(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r, func(s *specs.Spec) {
		most := int64(24 << 20)
		s.Linux.Resources.Memory = &specs.LinuxMemory{Limit: &most, Swap: &most}
	})
	var event struct {
		Type, ID string
		Data     struct {
			Pids   struct{ Current uint64 }
			Memory struct{ Usage struct{ Limit uint64 } }
		}
	}
	r.Await("the container's one thread", func() bool { // before it executes, it is a Go program with several threads
		err := json.Unmarshal([]byte(r.Must("events", "--stats", id)), &event)
		return err == nil && event.Data.Pids.Current == 1
	})
	if event.Type != "stats" || event.ID != id || event.Data.Memory.Usage.Limit != 24<<20 {
		t.Errorf("%+v", event)
	}

	output, err := os.Create(filepath.Join(r.Directory(), "events"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(time.Minute))
	defer cancel()
	cmd := r.Command(ctx, "events", "--interval", "10ms", id)
	cmd.Stdout = output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := func(text string) func() bool {
		return func() bool {
			all, _ := os.ReadFile(output.Name())
			return strings.Contains(string(all), text)
		}
	}
	r.Await("a line of use", said(`{"type":"stats","id":"waiting","data":{`))
	if said(`"type":"oom"`)() {
		t.Error("memory was short before anything used it")
	}
	if got := r.Do("exec", id, "dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1"); got.Status != 137 {
		t.Errorf("it had the memory: %+v", got)
	}
	r.Await("a line of want", said(`{"type":"oom","id":"waiting"}`))
	r.Must("delete", "--force", id)
	if err := cmd.Wait(); err != nil {
		t.Errorf("events: %v", err)
	}
	r.Must("run", "--detach", "--bundle", r.Bundle("exec sleep 1000"), id) // for the clean-up
}
