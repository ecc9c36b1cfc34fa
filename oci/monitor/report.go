package monitor

import (
	"context"
	"fmt"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

const (
	// reportPatience is less than a removal of the container waits: finishPatience, and
	// the 5 seconds that containerd gives it after its shim has died.
	reportPatience = 3 * time.Second
	// reportedCommand bounds the command in a report, in bytes: the container's author
	// chose it, and cloved rejects long lines.
	reportedCommand = 8 << 10
)

// report sends cloved the record, once. The file is what the annotation promises, so
// a cloved that is down is neither waited for nor an error.
func (m *monitor) report(ctx context.Context, r agent.Record) error {
	if m.order.Socket == "" {
		return nil // from an order of an older clove-oci
	}
	cloved, err := client.Dial(ctx, m.order.Socket)
	if agent.KindOf(err) == agent.KindNotFound {
		return nil
	}
	if err == nil {
		defer cloved.Close()
		r.Command = shortened(r.Command, reportedCommand)
		err = client.Perform(ctx, cloved, methods.Container, api.ContainerParams{Container: agent.Container{ID: m.order.ID, Directory: m.directory}, Record: r})
	}
	if err != nil {
		return fmt.Errorf("cloved does not have the record: %w", err)
	}
	return nil
}

// shortened is as many whole words as there is room for, and "…" if there were more.
func shortened(command []string, room int) []string {
	for i, word := range command {
		if room -= len(word) + 1; room < 0 {
			return append(command[:i:i], "…")
		}
	}
	return command
}
