// Package files copies, hashes and packs trees: what tasks begin with, and what attempts
// leave.
//
// A tree may come from an agent. It is opened once and read below that (os.Root), no link is
// followed, and a file that is neither regular nor a directory nor a link is refused.
package files
