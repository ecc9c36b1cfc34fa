package daemon

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/policies"
	"clove.run/clove/store"
)

// pastRuns is the number of ended runs in the benchmarks' store.
const pastRuns = 10_000

// remembered fills a store, in memory: otherwise the disk would be measured.
func remembered(b *testing.B, number int) records {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "clove-bench-")
	must(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	r := records{path: filepath.Join(dir, "clove.db")}
	must(b, r.with(func(s *store.Store) error {
		for i := range number {
			if err := livedOnce(s, fmt.Sprintf("past-%d", i)); err != nil {
				return err
			}
		}
		return nil
	}))
	return r
}

// livedOnce stores one run from its beginning to its end.
func livedOnce(s *store.Store, name string) error {
	spec := policies.Standard()
	spec.ID, spec.Name, spec.Detached = agent.NewID(), name, true
	spec.Command, spec.Env = []string{"/bin/sleep", "3600"}, []string{"PATH=/usr/bin:/bin", "HOME=/home/agent"}
	began := time.Now().Add(-time.Hour)
	if _, err := s.Enqueue(agent.Run{Spec: spec, Created: began}); err != nil {
		return err
	}
	_, err := s.Finish(spec.ID, agent.EventRecorded, agent.Record{Version: agent.RecordVersion, ID: spec.ID, Name: name, Command: spec.Command,
		Started: began, Ended: time.Now(), Status: agent.StatusExited, Denials: []agent.Denial{},
		Enforced: map[string]string{"memory": "cgroup v2", "pids": "cgroup v2", "disk": "ext4 image"}, Unenforced: []string{}}, nil)
	return err
}

// BenchmarkLoad measures what cloved reads before it is ready.
func BenchmarkLoad(b *testing.B) {
	r := remembered(b, pastRuns)
	for b.Loop() {
		must(b, newCache(r).refresh())
	}
}

// BenchmarkListPast measures cloved's part of clove ps -a.
func BenchmarkListPast(b *testing.B) {
	benchmarkList(b, remembered(b, pastRuns), api.ListParams{All: true, Brief: true})
}

// benchmarkList calls the handler and encodes its answer.
func benchmarkList(b *testing.B, r records, p api.ListParams) {
	d := New(Options{Config: DefaultConfig(), Log: slog.New(slog.DiscardHandler)})
	d.records, d.cache.records = r, r
	must(b, d.cache.refresh())
	c := &request{Context: context.Background(), peer: caller{}}
	for b.Loop() {
		result, err := d.runs().list(c, p)
		must(b, err)
		_, err = result.make()
		must(b, err)
	}
}

// BenchmarkListPastOverTheSocket measures clove ps -a without the output of its table.
func BenchmarkListPastOverTheSocket(b *testing.B) { overTheSocket(b, pastRuns) }

// BenchmarkListManyOverTheSocket measures clove ps of many agents.
func BenchmarkListManyOverTheSocket(b *testing.B) { overTheSocket(b, 500) }

func overTheSocket(b *testing.B, number int) {
	r := newRig(b, nil)
	r.d.records = remembered(b, number)
	r.d.cache.records = r.d.records
	c := r.serve()
	for b.Loop() {
		listed, err := client.Collect(client.All(context.Background(), c, methods.RunList, api.ListParams{All: true, Brief: true}))
		must(b, err)
		if len(listed) != number {
			b.Fatal(len(listed))
		}
	}
}

// BenchmarkLogsOverTheSocket measures clove logs of 32 MB, without the terminal.
func BenchmarkLogsOverTheSocket(b *testing.B) {
	logsOverTheSocket(b, api.LogsParams{}, loggedLines)
}

// BenchmarkLogsOverTheSocketTail measures clove logs --tail 5 of the same log.
func BenchmarkLogsOverTheSocketTail(b *testing.B) {
	tail := 5
	logsOverTheSocket(b, api.LogsParams{Tail: &tail}, tail)
}

// loggedLines is the number of lines in one file of a log with the default cap.
const loggedLines = 190_000

func logsOverTheSocket(b *testing.B, p api.LogsParams, want int) {
	r := newRig(b, nil)
	run := r.add("talker", rootCaller.owner, agent.StateEnded)
	log, err := logs.Open(r.d.options.Paths.Log(run.Spec.ID), 64<<20)
	must(b, err)
	_, _ = log.Stream("stdout").Write(bytes.Repeat([]byte(strings.Repeat("x", 99)+"\n"), loggedLines))
	must(b, log.Close())
	c := r.serve()
	p.Run = "talker"
	for b.Loop() {
		lines := 0
		must(b, c.Logs(context.Background(), p, func(part []api.LogLine) error { lines += len(part); return nil }))
		if lines != want {
			b.Fatal(lines)
		}
	}
}
