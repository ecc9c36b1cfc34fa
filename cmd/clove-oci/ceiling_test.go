package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

// Requests of annotations are held against the ceiling, place by place. The controls: requests
// within it, places that no annotation names, and a host without a ceiling.
func TestTheCeilingBoundsAnnotations(t *testing.T) {
	dir := t.TempDir()
	text := "version: 1\nname: host\nlimits: {memory: 1G, pids: 100, cpus: 1, timeout: 1h}\nnetwork: {mode: allowlist, allow: [\"*.example.com\"], deny: [bad.example.com]}\n"
	if err := os.WriteFile(filepath.Join(dir, "host.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	within := map[string]string{oci.AnnotationMemory: "1G", oci.AnnotationPids: "100", oci.AnnotationCPUs: "1", oci.AnnotationTimeout: "1h",
		oci.AnnotationNetworkMode: "allowlist", oci.AnnotationNetworkAllow: "api.example.com", oci.AnnotationNetworkDeny: "bad.example.com"}
	parse := func(given map[string]string) oci.Rules {
		rules, err := oci.Parse(given)
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	for _, given := range []map[string]string{within, nil, {oci.AnnotationTimeout: "1m"}, {oci.AnnotationNetworkMode: "none"}, {oci.AnnotationRecord: oci.RecordsDir + "/a.json"}} {
		if err := checkCeiling(parse(given), dir); err != nil {
			t.Errorf("%v: %v", given, err)
		}
	}
	for key, given := range map[string]map[string]string{
		oci.AnnotationMemory:       {oci.AnnotationMemory: "2G"},
		oci.AnnotationMemorySwap:   {oci.AnnotationMemory: "1G", oci.AnnotationMemorySwap: "2G"},
		oci.AnnotationPids:         {oci.AnnotationPids: "101"},
		oci.AnnotationCPUs:         {oci.AnnotationCPUs: "1.5"},
		oci.AnnotationTimeout:      {oci.AnnotationTimeout: "61m"},
		oci.AnnotationNetworkMode:  {oci.AnnotationNetworkMode: "public"},
		oci.AnnotationNetworkAllow: {oci.AnnotationNetworkMode: "allowlist", oci.AnnotationNetworkAllow: "example.org", oci.AnnotationNetworkDeny: "bad.example.com"},
	} {
		rules := parse(given)
		err := checkCeiling(rules, dir)
		if err == nil || agent.FailureOf(err).Step != "annotation "+key || !strings.Contains(agent.FailureOf(err).Hint, "host.yaml") {
			t.Errorf("%v: %v", given, err)
		}
		if err := checkCeiling(rules, t.TempDir()); err != nil {
			t.Errorf("control without a ceiling, %v: %v", given, err)
		}
	}
	// A denial of the ceiling holds where the annotation opens what it denies.
	opens := parse(map[string]string{oci.AnnotationNetworkMode: "allowlist", oci.AnnotationNetworkAllow: "*.example.com"})
	if err := checkCeiling(opens, dir); err == nil || !strings.Contains(err.Error(), "bad.example.com") {
		t.Errorf("a denial is not held: %v", err)
	}
	beside := parse(map[string]string{oci.AnnotationNetworkMode: "allowlist", oci.AnnotationNetworkAllow: "api.example.com"})
	if err := checkCeiling(beside, dir); err != nil {
		t.Errorf("control: nothing that is denied is opened: %v", err)
	}
	// One that cannot be read lets no annotation pass, and a bundle without one.
	if err := os.WriteFile(filepath.Join(dir, "host.yaml"), []byte("version: 1\nname: host\nlimit: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkCeiling(parse(nil), dir); err != nil {
		t.Error(err)
	}
	if err := checkCeiling(parse(map[string]string{oci.AnnotationPids: "1"}), dir); err == nil {
		t.Error("a ceiling with a mistake bounds nothing")
	}
}
