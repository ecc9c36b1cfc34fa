package runtime

import (
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/policies"
)

func TestClocksBeginWhereTheyAreAskedTo(t *testing.T) {
	t.Parallel()
	now := clocks{monotonic: 5*time.Second + 250*time.Millisecond, boot: 100 * time.Second}
	got := now.offsets(10 * time.Second)
	want := map[string]specs.LinuxTimeOffset{"monotonic": {Secs: 4, Nanosecs: 750_000_000}, "boottime": {Secs: -90}}
	for name, offset := range want {
		if got[name] != offset {
			t.Errorf("%s: %+v, not %+v", name, got[name], offset)
		}
	}
	if got := timeOffset(-1); got != (specs.LinuxTimeOffset{Secs: -1, Nanosecs: 999_999_999}) {
		t.Errorf("a nanosecond back is %+v", got)
	}
	if now.ahead(0) != 0 || now.ahead(10*time.Second) != -90*time.Second {
		t.Error("the clocks of the host are shifted, or the others are not")
	}
}

// Without a start the sandbox has no time namespace.
func TestATimeNamespaceOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	for _, start := range []time.Duration{0, time.Hour} {
		spec := asked(policies.AgentUser)
		spec.ClockStart = start
		config := compile(spec, around())
		has := false
		for _, n := range config.Linux.Namespaces {
			has = has || n.Type == specs.TimeNamespace
		}
		if has != (start > 0) || (config.Linux.TimeOffsets != nil) != has {
			t.Errorf("%s: %+v, %+v", start, config.Linux.Namespaces, config.Linux.TimeOffsets)
		}
	}
}
