//go:build root && race

package kernel

// slowdown is that of the race detector, whose work on what is found is no part of clove's time.
const slowdown = 4
