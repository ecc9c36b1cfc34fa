package settings

import (
	"testing"

	"clove.run/clove/agent"
)

func TestParseUlimit(t *testing.T) {
	for text, want := range map[string]agent.Rlimit{
		"nofile=1024:2048":            {Name: "nofile", Soft: 1024, Hard: 2048},
		"core=0":                      {Name: "core"},
		"nofile=5:-1":                 {Name: "nofile", Soft: 5, Hard: agent.RlimitInfinity},
		"memlock=-1:-1":               {Name: "memlock", Soft: agent.RlimitInfinity, Hard: agent.RlimitInfinity},
		"nofile":                      {},
		"nofile=":                     {},
		"nofile=-1:5":                 {},
		"nofile=1:":                   {},
		"bogus=1":                     {},
		"RLIMIT_NOFILE=1":             {},
		"nofile=99999999999999999999": {},
	} {
		if got, err := parseUlimit(text); (err != nil) != (want == agent.Rlimit{}) || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzLimits(f *testing.F) {
	for _, seed := range []string{"256M", "1.5g", "12X", "1e5", "0x1p4", "inf", "NaN", "-1", "9223372036854775807", "1 k", "90", "2h", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseSize("memory", text, 4096); err == nil && (n < 4096 || n > agent.SizeCeiling) {
			t.Errorf("%q is %d", text, n)
		}
		if d, err := ParseClock("timeout", text); err == nil && (d < 0 || d > agent.ClockCeiling) {
			t.Errorf("%q is %s", text, d)
		}
		if u, err := parseUlimit(text); err == nil && u.Soft > u.Hard {
			t.Errorf("%q is %+v", text, u)
		}
	})
}
