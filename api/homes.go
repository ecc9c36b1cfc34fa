package api

import "clove.run/clove/agent"

// HomesResult is the kept homes that the caller may see, the one that changed last first.
type HomesResult struct {
	Homes []agent.KeptHome `json:"homes"`
}

// HomeParams names a kept home.
type HomeParams struct {
	Home string `json:"home"` // its id, or its name where only one of the caller's has it
}
