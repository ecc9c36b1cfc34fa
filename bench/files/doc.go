// Package files copies, hashes and packs trees of files: the inputs of tasks, and the
// outputs of attempts.
//
// A tree may come from an agent. It is opened once and read below that (os.Root), no link is
// followed, and a file that is neither regular nor a directory nor a link is refused.
package files
