package oci

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// TestAnUpdateThatWouldEndBeyondIsRefused: after is the resulting limit.
func TestAnUpdateThatWouldEndBeyondIsRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		after       string
		annotations map[string]string
		refused     string // the annotation
	}{
		"nothing asked":          {`{"memory":{"limit":-1},"pids":{"limit":-1}}`, nil, ""},
		"within":                 {`{"memory":{"limit":1048576}}`, map[string]string{AnnotationMemory: "1M"}, ""},
		"more memory":            {`{"memory":{"limit":1048577}}`, map[string]string{AnnotationMemory: "1M"}, AnnotationMemory},
		"any memory":             {`{"memory":{"limit":-1}}`, map[string]string{AnnotationMemory: "1M"}, AnnotationMemory},
		"no memory limit":        {`{"memory":{"limit":0}}`, map[string]string{AnnotationMemory: "1M"}, AnnotationMemory},
		"swap within":            {`{"memory":{"limit":524288,"swap":1048576}}`, map[string]string{AnnotationMemorySwap: "1M"}, ""},
		"more swap":              {`{"memory":{"limit":524288,"swap":1048577}}`, map[string]string{AnnotationMemorySwap: "1M"}, AnnotationMemorySwap},
		"any swap":               {`{"memory":{"limit":524288,"swap":-1}}`, map[string]string{AnnotationMemorySwap: "1M"}, AnnotationMemorySwap},
		"forgotten swap":         {`{"memory":{"limit":524288,"swap":0}}`, map[string]string{AnnotationMemorySwap: "1M"}, AnnotationMemorySwap},
		"pids within":            {`{"pids":{"limit":64}}`, map[string]string{AnnotationPids: "64"}, ""},
		"one pid":                {`{"pids":{"limit":0}}`, map[string]string{AnnotationPids: "64"}, ""},
		"more pids":              {`{"pids":{"limit":65}}`, map[string]string{AnnotationPids: "64"}, AnnotationPids},
		"any pids":               {`{"pids":{"limit":-1}}`, map[string]string{AnnotationPids: "64"}, AnnotationPids},
		"cpus within":            {`{"cpu":{"quota":25000,"period":50000}}`, map[string]string{AnnotationCPUs: "0.5"}, ""},
		"the kernel's period":    {`{"cpu":{"quota":50000,"period":0}}`, map[string]string{AnnotationCPUs: "0.5"}, ""},
		"more cpus":              {`{"cpu":{"quota":50001,"period":100000}}`, map[string]string{AnnotationCPUs: "0.5"}, AnnotationCPUs},
		"more by the period":     {`{"cpu":{"quota":50000,"period":50000}}`, map[string]string{AnnotationCPUs: "0.5"}, AnnotationCPUs},
		"any cpus":               {`{"cpu":{"quota":-1,"period":100000}}`, map[string]string{AnnotationCPUs: "0.5"}, AnnotationCPUs},
		"by the files of v2":     {`{"memory":{"limit":1},"unified":{"memory.max":"max"}}`, map[string]string{AnnotationMemory: "1M"}, AnnotationMemory},
		"another file of v2":     {`{"memory":{"limit":1},"unified":{"memory.high":"5"}}`, map[string]string{AnnotationMemory: "1M"}, ""},
		"swap by the files":      {`{"memory":{"limit":1,"swap":1},"unified":{"memory.swap.max":"max"}}`, map[string]string{AnnotationMemorySwap: "1M"}, AnnotationMemorySwap},
		"what is not limited is": {`{"memory":{"limit":1,"swap":-1},"pids":{"limit":-1},"cpu":{"quota":-1}}`, map[string]string{AnnotationMemory: "1M"}, ""},
	} {
		rules, err := Parse(row.annotations)
		if err != nil {
			t.Fatal(err)
		}
		after := specs.LinuxResources{Memory: &specs.LinuxMemory{}, CPU: &specs.LinuxCPU{}, Pids: &specs.LinuxPids{}}
		if err := json.Unmarshal([]byte(row.after), &after); err != nil {
			t.Fatal(err)
		}
		err = rules.Allow(&after)
		if row.refused == "" && err != nil || row.refused != "" && (agent.KindOf(err) != agent.KindInvalid || !strings.HasPrefix(err.Error(), "annotation "+row.refused+": ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
