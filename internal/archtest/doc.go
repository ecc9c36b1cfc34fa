// Package archtest checks the imports of the tree: which package may import
// which, and which one owns each heavy library. The rules are a table with a
// reason beside each; the test reads the real imports.
package archtest
