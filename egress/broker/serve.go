package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"clove.run/clove/egress"
	"clove.run/clove/egress/wire"
)

// maxAtOnce bounds the requests being answered. Further ones wait in the channel and so
// slow the gate.
const maxAtOnce = 256

// finalReports is how long the gate may take, at the end of a run, to report the bytes of
// flows that are still open, because the kernel does not count them.
const finalReports = 200 * time.Millisecond

// ErrGateGone is Serve's error if the gate ended first: the agent has lost its network.
var ErrGateGone = errors.New("the gate is gone")

// Serve sends the gate its listeners and answers its requests. It owns conn. It returns nil
// when ctx ends, ErrGateGone when the gate has ended, and another error when the gate
// cannot be trusted any more. All sockets are then closed or cut, also those that the gate
// may still hold, and all goroutines have ended. A Broker serves once.
func (b *Broker) Serve(ctx context.Context, conn *wire.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() {
		// The gate sees the end of the messages, sends its last reports and exits.
		_ = conn.CloseSend() // an error means that the gate has ended
		time.AfterFunc(finalReports, func() { conn.Close() })
	})
	var workers sync.WaitGroup
	workers.Go(func() { b.watchBytes(ctx) })
	err := b.serve(ctx, conn, &workers)
	stopped := ctx.Err() != nil
	cancel()
	stop()
	conn.Close() // also ends the workers' sends
	workers.Wait()
	b.logCut(b.connections.end(), ReasonOver)
	b.connections.awaitCloses()
	if stopped {
		return nil
	}
	if hostile := (*untrusted)(nil); errors.As(err, &hostile) {
		b.log(Decision{Kind: KindGate, Outcome: OutcomeHostile, Reason: ReasonUntrusted, Detail: hostile.what})
	}
	return err
}

// serve receives requests until the channel ends. Each request that expects an answer runs
// in a goroutine of workers. Reports run in this loop, so that they stay in their order.
func (b *Broker) serve(ctx context.Context, conn *wire.Conn, workers *sync.WaitGroup) error {
	if err := b.setUp(conn); err != nil {
		return err
	}
	atOnce := make(chan struct{}, maxAtOnce)
	for {
		request, err := conn.ReceiveRequest()
		if err == io.EOF {
			return ErrGateGone
		}
		if err != nil {
			return distrust("%s", err)
		}
		// In the receiving loop, so that nothing after a request that no honest gate sends
		// is looked at.
		if err := b.check(request); err != nil {
			return err
		}
		if request.ID == 0 {
			if err := b.note(request); err != nil {
				return err
			}
			continue
		}
		select {
		case atOnce <- struct{}{}:
		case <-ctx.Done():
			continue // requests are not answered any more, but reports still count
		}
		workers.Go(func() {
			defer func() { <-atOnce }()
			answer := b.answer(ctx, request)
			answer.ID = request.ID
			// If the channel is gone, the loop above ends.
			_ = conn.SendAnswer(answer)
			// The gate has its own copies; the duplicates for counting are kept elsewhere.
			closeFiles(answer.Files)
		})
	}
}

// setUp sends the listeners and closes the broker's copies.
func (b *Broker) setUp(conn *wire.Conn) error {
	setup := wire.Setup{Limits: b.config.Limits, Listeners: []wire.Listener{}}
	var files []*os.File
	for _, l := range b.config.Listeners {
		setup.Listeners = append(setup.Listeners, wire.Listener{Kind: l.Kind, Port: l.Port, IDs: l.IDs})
		files = append(files, l.File)
	}
	defer closeFiles(files)
	if err := conn.SendAnswer(wire.Answer{Setup: &setup, Files: files}); err != nil {
		return fmt.Errorf("cannot set the gate up: %w", err)
	}
	return nil
}

// answer decides on a request that check accepted.
func (b *Broker) answer(ctx context.Context, r wire.Request) wire.Answer {
	switch {
	case r.Lookup != nil:
		return b.lookup(ctx, r.Lookup, nil)
	case r.Open != nil:
		return b.open(ctx, r.ID, r.Open)
	case r.Flow != nil:
		return b.flow(ctx, r.ID, r.Flow)
	}
	return b.enter(ctx, r.Enter)
}

// note handles messages that expect no answer.
func (b *Broker) note(r wire.Request) error {
	switch {
	case r.Ready != nil:
		b.readyOnce.Do(func() { close(b.ready) })
	case r.Refused != nil:
		b.noteRefused(r.Refused)
	case r.Closed != nil:
		return b.noteClosed(r.Closed)
	case r.Held != nil:
		b.people.noteHeld(r.Held, b.config.Namespace)
	}
	return nil
}

// noteClosed requires a number that is open. Otherwise a gate that was taken over could
// report other ends, and hold more connections than its limit.
func (b *Broker) noteClosed(said *wire.Closed) error {
	c, bytes, wasCut := b.connections.closed(said.Number, traffic{received: said.RxBytes, sent: said.TxBytes})
	if c == nil {
		return distrust("the end of %d, which is not open", said.Number)
	}
	if !wasCut {
		d := c.decision(OutcomeEnded, c.verdict)
		d.RxBytes, d.TxBytes = bytes.received, bytes.sent
		b.log(d)
	}
	return nil
}

// noteRefused logs what the gate itself refused. A name that is not canonical is left out,
// because the agent chose its text.
func (b *Broker) noteRefused(r *wire.Refused) {
	d := Decision{Kind: KindTCP, Outcome: OutcomeDenied, Address: r.Target, Reason: string(r.Reason), Detail: refusals[r.Reason]}
	if r.Count > 1 {
		d.Count = r.Count
	}
	name, ok := canonical(r.Name)
	if ok {
		d.Name = string(name)
	}
	switch r.Reason {
	case wire.ReasonNoName, wire.ReasonEncrypted, wire.ReasonHTTP2, wire.ReasonTooLong:
		d.Hint = b.connections.currentRules().HintNoName(egress.Connection{Proto: egress.TCP, Target: r.Target, Pinned: b.pins.names(r.Target.Addr())})
	}
	switch {
	case r.Reason == wire.ReasonQuery:
		d.Kind = KindDNS
	case r.Reason == wire.ReasonProtocol:
		d.Kind = KindOther
	case r.UDP:
		d.Kind = KindUDP
	}
	b.log(d)
}

// bytesInterval is how late the broker may notice that --net-bytes is used up. An honest
// gate enforces the limit exactly.
const bytesInterval = 250 * time.Millisecond

// watchBytes cuts everything when the kernel's counters exceed the limit. It ends with ctx.
func (b *Broker) watchBytes(ctx context.Context) {
	if b.config.Limits.Bytes <= 0 {
		return
	}
	interval := time.NewTicker(bytesInterval)
	defer interval.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-interval.C:
			b.holdBytes()
		}
	}
}

// holdBytes logs the limit once and cuts every connection.
func (b *Broker) holdBytes() {
	ended, isNew := b.connections.exhaust()
	if isNew {
		d := Decision{Kind: KindGate, Outcome: OutcomeDenied, Reason: string(wire.ReasonBytes)}
		d.Detail, d.Hint = refusals[wire.ReasonBytes], limitHints[wire.ReasonBytes]
		b.log(d)
	}
	b.logCut(ended, string(wire.ReasonBytes))
}
