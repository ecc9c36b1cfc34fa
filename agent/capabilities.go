package agent

// RootCapabilities are what an agent of root's has, and what installing packages takes: dpkg
// and pip change owners and modes, apt drops to its own user. Docker's default set without
// everything that touches network, devices or chroot.
var RootCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
	"CAP_SETFCAP", "CAP_SETGID", "CAP_SETUID",
}
