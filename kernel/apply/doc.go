// Package apply is the service by which an agent has its changes written back to its workspace on the host, if people
// allow it.
//
// # Theory of operation
//
// agent.apply reads the changes and asks people about them: they see each one. Their answer holds for a digest, which
// stands for the bytes of the files too. After a yes the changes are read again, and written as the run's owner if the
// digest is the same. The agent stands still from that look to the last file, so nothing can be swapped in between.
//
// The files are written before the transaction with the answer. Where cloved is killed in between, the call is done
// once more: what is written by then is no change any more, the digest is another one, and the call is refused with
// that. So each change is written once or not at all.
package apply
