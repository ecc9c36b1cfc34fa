// Package plan makes the list of attempts of a suite: tasks × agents × seeds. It is pure: the
// same suite gives the same list, and what is left after a crash follows from the list and
// the results alone.
package plan
