package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Each manifest is added behind those that it starts, as clove run -d would start it, and is shown with its digest.
func TestManifestAdd(t *testing.T) {
	b := newBench(t)
	b.file("lead.yaml", "version: 1\nname: lead\ncommand: [sleep]\nspawn: [worker.yaml]\n", 0o644)
	b.file("worker.yaml", "version: 1\nname: worker\ncommand: [sleep, \"1\"]\nlimits: {memory: 64M}\n", 0o644)
	f := b.cloved()
	var added []api.ManifestAddParams
	f.answers[methods.ManifestAdd.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		var p api.ManifestAddParams
		unmarshal(t, string(params), &p)
		added = append(added, p)
		return api.ManifestResult{Manifest: api.AddedManifest{Name: p.Name, Digest: "sha256:" + p.Name}}, nil
	}
	lead := b.host.Dir + "/lead.yaml"
	status, stdout, stderr := b.clove("manifest", "add", lead)
	if status != 0 || stderr != "" || stdout != "worker@sha256:worker\nlead@sha256:lead\n" || len(added) != 2 {
		t.Fatalf("%d, %q, %s, %+v", status, stdout, stderr, added)
	}
	if one := added[0].Spec; one.ID != "" || !one.Detached || one.Limits.MemoryBytes != 64<<20 || len(one.Command) != 2 {
		t.Errorf("%+v", one)
	}
	_, stdout, _ = b.clove("manifest", "add", "--json", lead)
	var shown []api.AddedManifest
	if unmarshal(t, stdout, &shown); len(shown) != 2 || shown[1].Digest != "sha256:lead" {
		t.Errorf("%s", stdout)
	}
	// All are read before one is added.
	added = nil
	b.file("worker.yaml", "version: 1\nname: worker\ncommand: [sleep]\nlimits: {memory: much}\n", 0o644)
	status, stdout, stderr = b.clove("manifest", "add", lead)
	if status != exitFailed || stdout != "" || !strings.Contains(stderr, "worker.yaml") || !strings.Contains(stderr, "hint:") || len(added) != 0 {
		t.Errorf("%d, %q, %s, %d added", status, stdout, stderr, len(added))
	}
	if status, _, stderr = b.clove("manifest", "add"); status != exitFailed || !strings.Contains(stderr, "hint: ") {
		t.Errorf("%d, %s", status, stderr)
	}
	b.file("worker.yaml", "version: 1\nname: worker\ncommand: [sleep]\n", 0o644)
	b.daemon = nil
	if status, _, stderr = b.clove("manifest", "add", lead); status != exitFailed || !strings.Contains(stderr, "cloved does not run") {
		t.Errorf("%d, %s", status, stderr)
	}
}

func TestManifestListAndRemove(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	all := []api.AddedManifest{{Name: "lead", Digest: "sha256:1", Added: time.Now().Add(-2 * time.Hour), Grants: []string{"spawn:worker", "tool:fetch"}}, {Owner: 7, Name: "worker", Digest: "sha256:2", Added: time.Now()}}
	f.answers[methods.ManifestList.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		var p api.ManifestListParams
		unmarshal(t, string(params), &p)
		if p.After == "" {
			return api.ManifestListResult{Manifests: all[:1], Next: "lead"}, nil
		}
		return api.ManifestListResult{Manifests: all[1:]}, nil
	}
	const want = `NAME    DIGEST    ADDED   GRANTS
lead    sha256:1  2h ago  spawn:worker,tool:fetch
worker  sha256:2  0s ago
`
	if status, stdout, stderr := b.clove("manifest", "ls"); status != 0 || stderr != "" || stdout != want {
		t.Errorf("%d, %s\n%s", status, stderr, stdout)
	}
	_, stdout, _ := b.clove("manifest", "ls", "--json")
	var shown []api.AddedManifest
	if unmarshal(t, stdout, &shown); len(shown) != 2 || shown[1].Owner != 7 || len(shown[0].Grants) != 2 {
		t.Errorf("%s", stdout)
	}
	f.answer(methods.ManifestRemove.Name, api.ManifestRemoveResult{Removed: all[:1]})
	status, stdout, stderr := b.clove("manifest", "rm", "lead")
	var asked api.ManifestNameParams
	if f.heard(methods.ManifestRemove.Name, &asked); status != 0 || stderr != "" || stdout != "lead\n" || asked.Name != "lead" {
		t.Errorf("%d, %q, %s, %+v", status, stdout, stderr, asked)
	}
	f.answers[methods.ManifestRemove.Name] = func(*rpc.Conn, json.RawMessage) (any, error) {
		return nil, api.Failure(api.CodeNotFound, "clove manifest ls", "there is no manifest other")
	}
	if status, stdout, stderr := b.clove("manifest", "rm", "other"); status != exitFailed || stdout != "" || !strings.Contains(stderr, "no manifest other") || !strings.Contains(stderr, "hint: clove manifest ls") {
		t.Errorf("%d, %q, %s", status, stdout, stderr)
	}
	for _, line := range []string{"manifest rm", "manifest rm a b", "manifest ls a"} {
		if status, stdout, stderr := b.clove(strings.Fields(line)...); status != exitFailed || stdout != "" || !strings.Contains(stderr, "hint:") {
			t.Errorf("%s: %d, %q, %s", line, status, stdout, stderr)
		}
	}
}
