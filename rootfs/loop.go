package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// loopTries bounds the race for a free loop device: with n concurrent starts, each try
// loses at most once to each of the others.
const loopTries = 1000

// ErrLoopForbidden means that the device cgroup of clove's container forbids loop devices.
var ErrLoopForbidden = errors.New("this container may open no loop device")

// attachLoop attaches image to a loop device and returns the open device.
// LO_FLAGS_AUTOCLEAR frees it when its last user closes or unmounts it, so nothing is left
// if clove is killed.
func attachLoop(image *os.File, readOnly bool, scratch string) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for a loop device: %w", err)
	}
	defer control.Close()
	// LOOP_CONFIGURE (Linux 5.8) sets the file and the flags at once. With the older two
	// calls, a clove that is killed in between would leave the device attached for good.
	config := unix.LoopConfig{Fd: uint32(image.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if readOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	for range loopTries {
		device, err := freeLoop(int(control.Fd()), scratch)
		if errors.Is(err, unix.EPERM) {
			return nil, fmt.Errorf("%w: %w", ErrLoopForbidden, err)
		}
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		device.Close()
		// LOOP_CTL_GET_FREE reserves nothing, so another process may have taken the device.
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("cannot attach %s to a loop device: %w", image.Name(), err)
		}
	}
	return nil, fmt.Errorf("cannot attach %s: lost %d races for a loop device", image.Name(), loopTries)
}

// freeLoop opens a loop device that was free a moment before. A container's /dev may lack
// its node; then a temporary one is made in scratch.
func freeLoop(control int, scratch string) (*os.File, error) {
	index, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, fmt.Errorf("cannot get a free loop device: %w", err)
	}
	path := fmt.Sprintf("/dev/loop%d", index)
	device, err := os.OpenFile(path, os.O_RDWR|unix.O_CLOEXEC, 0)
	if !errors.Is(err, os.ErrNotExist) {
		return device, err
	}
	number, err := os.ReadFile(fmt.Sprintf("/sys/block/loop%d/dev", index))
	if err != nil {
		return nil, fmt.Errorf("cannot find loop device %d: %w", index, err)
	}
	major, minor, _ := strings.Cut(strings.TrimSpace(string(number)), ":")
	majorNumber, errMajor := strconv.ParseUint(major, 10, 32)
	minorNumber, errMinor := strconv.ParseUint(minor, 10, 32)
	if err := errors.Join(errMajor, errMinor); err != nil {
		return nil, fmt.Errorf("cannot read the number of loop device %d: %w", index, err)
	}
	node := filepath.Join(scratch, fmt.Sprintf("loop%d", index))
	if err := unix.Mknod(node, unix.S_IFBLK|0o600, int(unix.Mkdev(uint32(majorNumber), uint32(minorNumber)))); err != nil {
		return nil, fmt.Errorf("cannot make a node for loop device %d: %w", index, err)
	}
	defer os.Remove(node)
	return os.OpenFile(node, os.O_RDWR|unix.O_CLOEXEC, 0)
}

// holdOff keeps udev from probing device: systemd-udevd ignores a locked block device until
// it is closed (systemd's BLOCK_DEVICE_LOCKING). The call waits for a probe that has begun.
func holdOff(device *os.File) error {
	if err := descriptor.Lock(device, unix.LOCK_EX); err != nil {
		return fmt.Errorf("cannot lock %s: %w", device.Name(), err)
	}
	return nil
}

// forget drops the kernel's cache of the device's content, after the file behind it was
// written directly.
func forget(device *os.File) error {
	if err := unix.IoctlSetInt(int(device.Fd()), unix.BLKFLSBUF, 0); err != nil {
		return fmt.Errorf("cannot drop the cache of %s: %w", device.Name(), err)
	}
	return nil
}
