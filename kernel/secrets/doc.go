// Package secrets is the service of secrets that programs use and never have: it keeps them encrypted, says which a run was
// started with, and decides each use.
//
//	set, rotate, remove, list, check   a user's own secrets
//	open                               a run's secrets, for its supervisor; their values, for egress/swap/inner
//	use                                one request of a run that is to carry a secret: counted, and in the audit log
//	Key, UseKey                        a secret of root's that is the key of a provider of models, for models/control
//	UseKept                            use, for a run of root's in the foreground without cloved
//	uses                               the newest of them
//
// A value is opened in Values alone, on its way into a pipe. It is in no row but encrypted, and in no result.
package secrets
