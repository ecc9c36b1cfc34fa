//go:build root && !race

package kernel

// slowdown is that of the race detector, which is off.
const slowdown = 1
