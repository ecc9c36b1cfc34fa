//go:build !seccomp

package container

// libcontainer built without this tag installs no filter and says nothing.
var _ = build_with_tags_seccomp
