// Package order is what clove asks its agent loop to do, as the words of a command line: clove
// writes them (Args), and clove-loop reads them inside the sandbox (Parse). The package imports
// nothing of clove's.
package order
