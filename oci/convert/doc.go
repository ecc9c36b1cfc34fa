// Package convert converts a process of an OCI config for libcontainer: limits, ids,
// capabilities, scheduling and the terminal's size, which libcontainer's own specconv
// leaves to its callers.
//
// OCI containers and local runs both use it, so that the same config means the same. It
// starts nothing, and refuses what the specification does not define.
package convert
