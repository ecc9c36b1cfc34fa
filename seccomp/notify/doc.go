// Package notify is the listener of a seccomp filter (seccomp_unotify(2)): it receives the
// calls that the filter hands over, reads what they point to, and answers them.
//
// # Theory of operation
//
// A filter whose program returns SECCOMP_RET_USER_NOTIF stops the calling thread until the
// holder of the filter's listener has answered. The holder may be any process; here it is the
// supervisor, outside of the sandbox. When the last copy of the listener is closed, the kernel
// answers all such calls with ENOSYS: nothing passes because a supervisor died.
//
// A call's arguments point to the caller's memory, and another of its threads may
// change it at any time. So the result of Text is good enough for a report, and never for a
// decision: Continue lets the kernel read the memory again. It is for calls that something
// else decides. After each reading Valid says whether the caller is still there; a pid alone
// may be another process's by then.
//
// # What it refuses to do
//
// It decides nothing, and knows no filter, run or policy.
package notify
