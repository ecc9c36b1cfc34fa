// Package machine says what the host is like, as far as it can change a figure, and measures
// how noisy it is: how far apart equal pieces of work are.
//
// It reads /proc and /sys, and changes nothing.
package machine
