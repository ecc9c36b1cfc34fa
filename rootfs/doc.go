// Package rootfs builds the root file system of one agent, and takes it down.
package rootfs
