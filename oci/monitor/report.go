package monitor

import (
	"context"
	"fmt"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/client"
)

const (
	// reportPatience is less than who removes the container waits: finishPatience, and
	// the 5 seconds that containerd has for it where its shim has died.
	reportPatience = 3 * time.Second
	// reportedCommand is how much of a command cloved hears, in bytes: its author
	// chose it, and cloved takes no long lines.
	reportedCommand = 8 << 10
)

// report tells cloved of the record, once. The file is what was promised: a
// cloved that is down is nothing to wait for, or to complain of.
func (k *keeper) report(ctx context.Context, r agent.Record) error {
	if k.order.Socket == "" {
		return nil // from an order of an older clove-oci
	}
	cloved, err := client.Dial(ctx, k.order.Socket)
	if agent.KindOf(err) == agent.KindNotFound {
		return nil
	}
	if err == nil {
		defer cloved.Close()
		r.Command = shortened(r.Command, reportedCommand)
		err = cloved.Account(ctx, api.ContainerParams{Container: agent.Container{ID: k.order.ID, Directory: k.directory}, Record: r})
	}
	if err != nil {
		return fmt.Errorf("cloved does not have the record: %w", err)
	}
	return nil
}

// shortened is as many whole words as there is room for, and a word that says
// that there were more.
func shortened(command []string, room int) []string {
	for i, word := range command {
		if room -= len(word) + 1; room < 0 {
			return append(command[:i:i], "…")
		}
	}
	return command
}
