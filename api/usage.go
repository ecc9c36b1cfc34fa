package api

import "clove.run/clove/agent"

// StatsResult is what a live run uses now.
type StatsResult struct {
	Stats agent.Stats `json:"stats"`
}

// ProcessesResult is the processes of a live run.
type ProcessesResult struct {
	Processes []agent.Process `json:"processes"`
}
