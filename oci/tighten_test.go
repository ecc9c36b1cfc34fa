package oci

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// bundle returns a config.json with these resources and annotations.
func bundle(t *testing.T, resources string, annotations map[string]string) *specs.Spec {
	t.Helper()
	spec := &specs.Spec{Version: specs.Version, Annotations: annotations}
	if resources == "" {
		return spec
	}
	spec.Linux = &specs.Linux{Resources: &specs.LinuxResources{}}
	if err := json.Unmarshal([]byte(resources), spec.Linux.Resources); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestLimitsOnlyEverTakeAway(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		engine      string
		annotations map[string]string
		want        string // resources afterwards; "": it is refused
	}{
		"nothing asked":              {`{"memory":{"limit":1024}}`, nil, `{"memory":{"limit":1024}}`},
		"memory where there is none": {"", map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576}}`},
		"less memory":                {`{"memory":{"limit":2097152}}`, map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576}}`},
		"the same memory":            {`{"memory":{"limit":1048576}}`, map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576}}`},
		"more memory":                {`{"memory":{"limit":1048575}}`, map[string]string{AnnotationMemory: "1M"}, ""},
		"memory instead of no limit": {`{"memory":{"limit":-1}}`, map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576}}`},
		"the rest stays": {`{"memory":{"limit":2097152,"swappiness":3},"pids":{"limit":5}}`, map[string]string{AnnotationMemory: "1M"},
			`{"memory":{"limit":1048576,"swappiness":3},"pids":{"limit":5}}`},
		"swap without memory":      {"", map[string]string{AnnotationMemorySwap: "1M"}, ""},
		"swap below memory":        {`{"memory":{"limit":2097152}}`, map[string]string{AnnotationMemorySwap: "1M"}, ""},
		"swap of both":             {"", map[string]string{AnnotationMemory: "1M", AnnotationMemorySwap: "2M"}, `{"memory":{"limit":1048576,"swap":2097152}}`},
		"no swap stays none":       {`{"memory":{"limit":4194304,"swap":4194304}}`, map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576,"swap":1048576}}`},
		"some swap stays as much":  {`{"memory":{"limit":4194304,"swap":6291456}}`, map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576,"swap":3145728}}`},
		"unlimited swap stays so":  {`{"memory":{"limit":4194304,"swap":-1}}`, map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576,"swap":-1}}`},
		"swap instead of memory":   {`{"memory":{"limit":4194304,"swap":4194304}}`, map[string]string{AnnotationMemory: "1M", AnnotationMemorySwap: "2M"}, ""},
		"less swap":                {`{"memory":{"limit":1048576,"swap":4194304}}`, map[string]string{AnnotationMemorySwap: "1M"}, `{"memory":{"limit":1048576,"swap":1048576}}`},
		"more swap":                {`{"memory":{"limit":1048576,"swap":1048576}}`, map[string]string{AnnotationMemorySwap: "2M"}, ""},
		"pids where none":          {"", map[string]string{AnnotationPids: "64"}, `{"pids":{"limit":64}}`},
		"fewer pids":               {`{"pids":{"limit":65}}`, map[string]string{AnnotationPids: "64"}, `{"pids":{"limit":64}}`},
		"more pids":                {`{"pids":{"limit":63}}`, map[string]string{AnnotationPids: "64"}, ""},
		"one pid":                  {`{"pids":{"limit":0}}`, map[string]string{AnnotationPids: "64"}, ""},
		"memory written twice":     {`{"unified":{"memory.max":"max"}}`, map[string]string{AnnotationMemory: "1M"}, ""},
		"swap written twice":       {`{"memory":{"limit":1},"unified":{"memory.swap.max":"max"}}`, map[string]string{AnnotationMemorySwap: "1M"}, ""},
		"pids written twice":       {`{"unified":{"pids.max":"max"}}`, map[string]string{AnnotationPids: "64"}, ""},
		"cpus written twice":       {`{"unified":{"cpu.max":"max"}}`, map[string]string{AnnotationCPUs: "1"}, ""},
		"another file":             {`{"unified":{"memory.high":"5"}}`, map[string]string{AnnotationMemory: "1M"}, `{"memory":{"limit":1048576},"unified":{"memory.high":"5"}}`},
		"cpus where none":          {"", map[string]string{AnnotationCPUs: "1.5"}, `{"cpu":{"quota":150000,"period":100000}}`},
		"fewer cpus":               {`{"cpu":{"quota":100000,"period":50000,"shares":7}}`, map[string]string{AnnotationCPUs: "1.5"}, `{"cpu":{"shares":7,"quota":75000,"period":50000}}`},
		"more cpus":                {`{"cpu":{"quota":50000,"period":50000}}`, map[string]string{AnnotationCPUs: "1.5"}, ""},
		"cpus instead of no limit": {`{"cpu":{"quota":-1}}`, map[string]string{AnnotationCPUs: "1"}, `{"cpu":{"quota":100000,"period":100000}}`},
	} {
		spec := bundle(t, row.engine, row.annotations)
		_, err := Apply(spec, "one")
		if row.want == "" {
			if agent.KindOf(err) != agent.KindInvalid {
				t.Errorf("%s: %v, not refused", name, err)
			}
			continue
		}
		got, _ := json.Marshal(spec.Linux.Resources)
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, row.want)
		}
	}
}

// TestWhatNobodyWouldHoldIsRefused: an annotation that is accepted and then ignored would be
// worse than none.
func TestWhatNobodyWouldHoldIsRefused(t *testing.T) {
	t.Parallel()
	_, err := Apply(bundle(t, "", map[string]string{AnnotationNetworkMode: "none"}), "one")
	var refused *agent.Error
	if !errors.As(err, &refused) || refused.Kind != agent.KindUnenforceable || refused.Hint == "" {
		t.Error(err)
	}
}

// TestWhatIsHeldFromOutsideIsHandedOn: except for a pod's sandbox, in which no agent runs.
func TestWhatIsHeldFromOutsideIsHandedOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		pod  map[string]string
		held bool
	}{
		"no pod":               {nil, true},
		"a pod's container":    {map[string]string{cri: "container", criID: "two"}, true},
		"a pod's sandbox":      {map[string]string{cri: "sandbox", criID: "one"}, false},
		"who calls itself one": {map[string]string{cri: "sandbox"}, true},
	} {
		annotations := map[string]string{AnnotationTimeout: "1h", AnnotationRecord: RecordsDir + "/a-" + RecordID + ".json", AnnotationPids: "7"}
		maps.Copy(annotations, row.pod)
		spec := bundle(t, "", annotations)
		rules, err := Apply(spec, "one")
		if err != nil || (rules.Limits.WallClock == time.Hour) != row.held || (rules.Record == annotations[AnnotationRecord]) != row.held ||
			(spec.Linux != nil) != row.held {
			t.Errorf("%s: %v, %+v", name, err, rules)
		}
	}
}

func TestNoAnnotationChangesNothing(t *testing.T) {
	t.Parallel()
	spec := bundle(t, "", map[string]string{"org.example": "1"})
	if _, err := Apply(spec, "one"); err != nil || spec.Linux != nil {
		t.Errorf("%v, %+v", err, spec.Linux)
	}
}
