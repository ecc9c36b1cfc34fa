package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"clove.run/clove/daemon"
	"clove.run/clove/daemon/traces"
)

// watched holds cloved's log, metrics and traces.
type watched struct {
	level slog.LevelVar
	// The last lines of the log, for `clove debug`: without systemd no other process keeps them.
	tail    daemon.Tail
	log     *slog.Logger
	tracer  *traces.Tracer
	scrapes daemon.Scrapes
}

// watch opens what the configuration and the environment ask for.
func watch(config daemon.Config) (*watched, error) {
	w := new(watched)
	w.level.Set(config.Level())
	w.log = daemon.NewLog(os.Stderr, &w.tail, &w.level)
	var err error
	if w.tracer, err = traces.FromEnvironment(context.Background(), version, w.log); err != nil {
		return nil, err
	}
	w.scrapes, err = daemon.ListenScrapes(config)
	return w, err
}

// complete adds these to the daemon's options. A reloaded configuration changes the log
// level at once.
func (w *watched) complete(o daemon.Options) daemon.Options {
	o.Version, o.Log, o.LogTail = version, w.log, &w.tail
	o.Scrapes, o.Tracer = w.scrapes, w.tracer
	o.Reloaded = func(c daemon.Config) { w.level.Set(c.Level()) }
	return o
}

// flushTime bounds the sending of the last spans to the collector.
const flushTime = 3 * time.Second

// close sends the last spans. The daemon closes the metrics listeners.
func (w *watched) close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := w.tracer.Close(ctx); err != nil {
		w.log.Warn("some traces were not exported", "error", err)
	}
}
