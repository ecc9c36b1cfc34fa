package oci

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

func TestEveryAnnotationIsRead(t *testing.T) {
	t.Parallel()
	got, err := Parse(map[string]string{
		AnnotationTimeout:              "1h30m",
		AnnotationNetworkMode:          "allowlist",
		AnnotationNetworkAllow:         "pypi.org, *.pythonhosted.org\n10.0.0.0/8:5432",
		AnnotationNetworkDeny:          "metadata",
		AnnotationMemory:               "256Mi",
		AnnotationMemorySwap:           "1G",
		AnnotationPids:                 "64",
		AnnotationCPUs:                 "1.5",
		AnnotationRecord:               RecordsDir + "/job-17.json",
		"io.kubernetes.cri.sandbox-id": "ours is not theirs",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Rules{
		Limits:  agent.Limits{WallClock: 90 * time.Minute, MemoryBytes: 256 << 20, MemorySwapBytes: 1 << 30, Pids: 64, CPUs: 1.5},
		Network: agent.NetworkAllowlist,
		Egress: []agent.EgressRule{
			{Target: "pypi.org", Source: AnnotationNetworkAllow},
			{Target: "*.pythonhosted.org", Source: AnnotationNetworkAllow},
			{Target: "10.0.0.0/8:5432", Source: AnnotationNetworkAllow},
			{Deny: true, Target: "metadata", Source: AnnotationNetworkDeny},
		},
		Record: RecordsDir + "/job-17.json",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestNobodysAnnotationsAskForNothing(t *testing.T) {
	t.Parallel()
	for _, given := range []map[string]string{nil, {}, {"run.cloves": "x", "run.cloverleaf.timeout": "x", "org.run.clove.timeout": "x"}} {
		if got, err := Parse(given); err != nil || !reflect.DeepEqual(got, Rules{}) {
			t.Errorf("%v became %+v, %v", given, got, err)
		}
	}
}

// TestGrantsAndBudgetsAreRefusedByName: a container that looks as if it had a budget would
// spend without one.
func TestGrantsAndBudgetsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, name := range notYet {
		_, err := Parse(map[string]string{Prefix + name: "tool:fetch"})
		if err == nil || err.Error() != "annotation "+Prefix+name+": not for OCI containers yet" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSizesMeanTheSameInBothSpellings checks each unit's number of bytes.
func TestSizesMeanTheSameInBothSpellings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 1, "4096": 4096, "512K": 512 << 10, "512Ki": 512 << 10, "256M": 256 << 20, "256Mi": 256 << 20,
		"2G": 2 << 30, "2Gi": 2 << 30, "1T": 1 << 40, "1Ti": 1 << 40, "4096T": agent.SizeCeiling,
		"1.5G": 3 << 29, "256m": 256 << 20, "256MiB": 256 << 20,
	} {
		if got, err := Parse(map[string]string{AnnotationMemory: text}); err != nil || got.Limits.MemoryBytes != want {
			t.Errorf("%q is %d, %v; want %d", text, got.Limits.MemoryBytes, err, want)
		}
	}
}

// badValues are values that each annotation must refuse.
var badValues = map[string][]string{
	AnnotationTimeout: {"", " ", "0", "0s", "-1s", "+1s", "10", "1 h", " 1h", "1h ", "1d", "1y", "h", "1h\n", "1e3s", "∞", "never", "NaN",
		"999us", "1ns", "90000h", "9223372036854775808ns", "1h,2h", "1:30"},
	AnnotationNetworkMode: {"", "host", "None", "allow", "allowlist ", " none", "public,none", "bridge", "false", "none\n"},
	AnnotationNetworkAllow: {"", " ", ",", "\n", "pypi.org,,b.org", ",pypi.org", "http://pypi.org", "pypi.org/simple", "pypi.org:0", "pypi.org:65536",
		"pypi.org:", ":443", "*", "*.", "a.*.org", "10.0.0.0/33", "10.0.0.1/8", "[::1", "icmp://1.1.1.1", "-", "a b\x00c", "user@host"},
	AnnotationNetworkDeny: {"", ",", "10.0.0.0/-1", "https://x", "1.2.3", "0x7f.1"},
	AnnotationMemory: {"", "0", "0M", "-1", "-256M", "+256M", "1,5G", "256  M", " 256M", "256M ", "M", "Mi", "i", "256Mii", "256iM",
		"256KM", "1e9", "0x100", "1_000", "unlimited", "max", "4097T", "9223372036854775808", "99999999999999999999", "256P", "１２"},
	AnnotationMemorySwap: {"", "0", "-1", "unlimited", "1.5X"},
	AnnotationPids:       {"", "0", "-1", "+5", "1.5", "1e3", "0x10", "1_000", " 5", "5 ", "max", "unlimited", "4194305", "9223372036854775808"},
	AnnotationCPUs:       {"", "0", "0.0", "0.009", "-1", "+1", "1e3", "0x1p4", "1_0", "inf", "Inf", "nan", "NaN", " 1", "1 ", "1,5", "1.5.", ".", "500m", "65537", "all"},
	AnnotationRecord: {"", "/", "job.json", "./job.json", "/etc/passwd", "/etc/cron.d/job.json", RecordsDir, RecordsDir + "/", RecordsDir + "/../job.json",
		RecordsDir + "/a/job.json", RecordsDir + "//job.json", RecordsDir + "/./job.json", RecordsDir + "/.job.json", RecordsDir + "/..json/../x.json",
		RecordsDir + "/job", RecordsDir + "/job.json/", RecordsDir + "/a\nb.json", RecordsDir + "/a\x00.json", RecordsDir + "x/job.json", "yes", "true"},
}

// TestAnnotationsAreJudgedTogether: annotations that are valid one by one may be invalid
// together.
func TestAnnotationsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	alone := map[string]string{AnnotationMemorySwap: "1M"}
	if _, err := Parse(alone); err != nil {
		t.Fatalf("control: %v", err)
	}
	for what, given := range map[string]map[string]string{
		"less swap than memory": {AnnotationMemory: "2M", AnnotationMemorySwap: "1M"},
		"more rules than are held": {AnnotationNetworkMode: agent.NetworkAllowlist, AnnotationNetworkAllow: strings.Repeat("a.example ", 600),
			AnnotationNetworkDeny: strings.Repeat("b.example ", 600)},
	} {
		_, err := Parse(given)
		var refused *agent.Error
		if !errors.As(err, &refused) || refused.Kind != agent.KindInvalid || !strings.HasPrefix(refused.Step, "annotation "+Prefix) || refused.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestABadValueIsRefusedWithItsName(t *testing.T) {
	t.Parallel()
	for _, a := range annotations {
		if len(badValues[a.key]) == 0 {
			t.Errorf("no bad value of %s is tried", a.key)
		}
		for _, value := range badValues[a.key] {
			got, err := Parse(map[string]string{a.key: value})
			var refused *agent.Error
			if !errors.As(err, &refused) {
				t.Errorf("%s: %q became %+v, %v", a.key, value, got, err)
				continue
			}
			if !strings.Contains(refused.Step, a.key) || refused.Message == "" || refused.Hint == "" {
				t.Errorf("%s: %q: step %q, message %q, hint %q: each must help", a.key, value, refused.Step, refused.Message, refused.Hint)
			}
			if !reflect.DeepEqual(got, Rules{}) {
				t.Errorf("%s: %q left %+v behind", a.key, value, got)
			}
		}
	}
}

func TestAKeyThatCloveDoesNotKnowIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"run.clove", "run.clove.", "run.clove.timeouts", "run.clove.Timeout", "Run.Clove.timeout", "run.clove.timeout ",
		"run.clove.limits", "run.clove.limits.", "run.clove.limits.disk", "run.clove.network", "run.clove.limits.memory.", "run.clove.seccomp"} {
		_, err := Parse(map[string]string{key: "1h"})
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// TestNetworkAnnotationsAreJudgedTogether: each value is valid by itself.
func TestNetworkAnnotationsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]map[string]string{
		"allow without a mode": {AnnotationNetworkAllow: "pypi.org"},
		"deny without a mode":  {AnnotationNetworkDeny: "pypi.org"},
		"allow and none":       {AnnotationNetworkAllow: "pypi.org", AnnotationNetworkMode: "none"},
	} {
		if got, err := Parse(given); err == nil || !strings.Contains(err.Error(), Prefix) {
			t.Errorf("%s became %+v, %v", name, got, err)
		}
	}
	for _, mode := range modes {
		if got, err := Parse(map[string]string{AnnotationNetworkMode: mode}); err != nil || got.Network != mode {
			t.Errorf("%s alone: %+v, %v", mode, got, err)
		}
	}
}

// FuzzParse searches for a value that causes a panic, or that is accepted without an effect.
func FuzzParse(f *testing.F) {
	for key, values := range badValues {
		for _, value := range values {
			f.Add(key, value)
		}
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		rules, err := Parse(map[string]string{key: value})
		if err == nil && ours(key) && reflect.DeepEqual(rules, Rules{}) {
			t.Errorf("%q: %q is taken and asks for nothing", key, value)
		}
	})
}
