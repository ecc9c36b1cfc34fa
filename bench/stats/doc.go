// Package stats computes what reports and comparisons state about samples: intervals of
// rates, quantiles, and the interval of a paired difference.
//
// Of gonum it uses mathext and floats. gonum/stat would bring linear algebra into clove, whose
// package initialisation every run pays for; the tests compare with it.
package stats
