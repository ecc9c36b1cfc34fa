package container

import (
	"encoding/json"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// merged returns a container's limits after a change, in libcontainer's format.
func merged(t *testing.T, before, change string) string {
	t.Helper()
	var r cgroups.Resources
	var c specs.LinuxResources
	for text, into := range map[string]any{before: &r, change: &c} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	mergeMemory(&r, c.Memory)
	mergeCPU(&r, c.CPU)
	mergeBlockIO(&r, c.BlockIO)
	r.MemoryCheckBeforeUpdate = false
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWhatAnUpdateDoesNotNameStays: the next update finds it unchanged.
func TestWhatAnUpdateDoesNotNameStays(t *testing.T) {
	for name, row := range map[string]struct{ before, change, want string }{
		"nothing":             {`{"memory":5}`, `{}`, `{"memory":5}`},
		"memory":              {`{"memory":5,"memory_swap":9}`, `{"memory":{"limit":6}}`, `{"memory":6,"memory_swap":9}`},
		"zero memory":         {`{"memory":5}`, `{"memory":{"limit":0,"swap":0}}`, `{"memory":5}`},
		"any memory":          {`{"memory":5,"memory_swap":9}`, `{"memory":{"limit":-1}}`, `{"memory":-1}`},
		"memory, swap unset":  {`{"memory":5,"memory_swap":9}`, `{"memory":{"limit":10,"swap":0}}`, `{"memory":10}`},
		"swap unset alone":    {`{"memory":5,"memory_swap":9}`, `{"memory":{"swap":0}}`, `{"memory":5,"memory_swap":9}`},
		"any swap":            {`{"memory":5,"memory_swap":9}`, `{"memory":{"swap":-1}}`, `{"memory":5,"memory_swap":-1}`},
		"reservation":         {`{}`, `{"memory":{"reservation":3}}`, `{"memory_reservation":3}`},
		"quota of a period":   {`{"cpu_quota":5,"cpu_period":7}`, `{"cpu":{"quota":6}}`, `{"cpu_quota":6,"cpu_period":7}`},
		"period of a quota":   {`{"cpu_quota":5,"cpu_period":7}`, `{"cpu":{"period":8}}`, `{"cpu_quota":5,"cpu_period":8}`},
		"shares are a weight": {`{}`, `{"cpu":{"shares":1024}}`, `{"cpu_shares":1024,"cpu_weight":100}`},
		"idle has no weight":  {`{"cpu_shares":1024,"cpu_weight":100}`, `{"cpu":{"idle":1}}`, `{"cpu_idle":1}`},
		"cpus":                {`{"cpuset_cpus":"0"}`, `{"cpu":{"mems":"0"}}`, `{"cpuset_cpus":"0","cpuset_mems":"0"}`},
		"weight":              {`{"blkio_weight":10}`, `{"blockIO":{"leafWeight":20}}`, `{"blkio_weight":10,"blkio_leaf_weight":20}`},
		"a device's weight": {`{"blkio_weight_device":[{"major":8,"minor":0,"weight":10,"leafWeight":11}]}`,
			`{"blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":12}]}}`, `{"blkio_weight_device":[{"major":8,"minor":0,"weight":12,"leafWeight":11}]}`},
		"another device": {`{"blkio_throttle_read_bps_device":[{"major":8,"minor":0,"rate":10}]}`,
			`{"blockIO":{"throttleReadBpsDevice":[{"major":8,"minor":16,"rate":12}]}}`,
			`{"blkio_throttle_read_bps_device":[{"major":8,"minor":0,"rate":10},{"major":8,"minor":16,"rate":12}]}`},
		"the same device": {`{"blkio_throttle_write_iops_device":[{"major":8,"minor":0,"rate":10}]}`,
			`{"blockIO":{"throttleWriteIOPSDevice":[{"major":8,"minor":0,"rate":12}]}}`, `{"blkio_throttle_write_iops_device":[{"major":8,"minor":0,"rate":12}]}`},
	} {
		got, want := merged(t, row.before, row.change), merged(t, row.want, `{}`)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestAChangeIsTakenBackWithWhatWasThere: so the old lists must not be changed.
func TestAChangeIsTakenBackWithWhatWasThere(t *testing.T) {
	old := []*cgroups.WeightDevice{cgroups.NewWeightDevice(8, 0, 10, 11)}
	weight := uint16(12)
	change := specs.LinuxWeightDevice{Weight: &weight}
	change.Major = 8
	changed := mergeWeight(old, change)
	if old[0] == nil || old[0].Weight != 10 || changed[0].Weight != 12 {
		t.Errorf("%+v became %+v", old[0], changed[0])
	}
}
