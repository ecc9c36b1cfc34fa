// Package machine describes the properties of the host that affect measurements, and
// measures its noise: how far apart equal pieces of work are.
//
// It reads /proc and /sys, and changes nothing.
package machine
