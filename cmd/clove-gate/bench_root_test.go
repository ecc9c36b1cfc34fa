//go:build root

package main

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/testhost"
)

// BenchmarkRelay sends through an echo server, so each byte is relayed twice, over one
// connection and over many at once.
func BenchmarkRelay(b *testing.B) {
	testhost.Root(b)
	const size = 4 << 20
	for _, connections := range []int{1, 64} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			_, connect := relaying(b, wire.Limits{})
			conns := make([]net.Conn, connections)
			for i := range conns {
				conn, err := connect()
				if err == nil {
					err = echoed(conn, request)
				}
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close()
				conns[i] = conn
			}
			data := make([]byte, size)
			b.SetBytes(int64(2 * size * connections))
			for b.Loop() {
				var all sync.WaitGroup
				for _, conn := range conns {
					all.Go(func() { _, _ = conn.Write(data) }) // the read below shows whether it worked
					all.Go(func() {
						if _, err := io.CopyN(io.Discard, conn, size); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
		})
	}
}

// BenchmarkNewConnection measures the time from connect to the first byte back, with both
// requests to the broker and the reading of the head.
func BenchmarkNewConnection(b *testing.B) {
	testhost.Root(b)
	_, connect := relaying(b, wire.Limits{})
	for b.Loop() {
		conn, err := connect()
		if err == nil {
			err = echoed(conn, request)
		}
		if err != nil {
			b.Fatal(err)
		}
		conn.Close()
	}
}
