package monitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"
)

// The kernel's accounting of every thread that ends (linux/taskstats.h; version
// 12, Linux 5.18), sent before the thread's process can be waited for: when a listener
// sees the process ended, all reports are in its queue. The kernel reports every end
// on the host to each listener; a filter on the socket accepts those of one process,
// so that a fork bomb elsewhere cannot fill the queue.
const (
	taskstatsName    = "TASKSTATS\x00"
	taskstatsVersion = 1 // of the protocol
	taskstatsGet     = 1 // TASKSTATS_CMD_GET, which also registers
	taskstatsCPUMask = 3 // TASKSTATS_CMD_ATTR_REGISTER_CPUMASK
	cpusPossible     = "/sys/devices/system/cpu/possible"
)

// Where things stand in a message, in bytes: struct nlmsghdr, struct genlmsghdr,
// the head of TASKSTATS_TYPE_AGGR_PID, TASKSTATS_TYPE_PID with its value, the
// head of TASKSTATS_TYPE_STATS, struct taskstats.
const (
	atType    = 4
	atThread  = 28
	atStats   = 36
	atStatus  = atStats + 4
	atFlags   = atStats + 8
	atProcess = atStats + 368 // ac_tgid, of version 12

	flagFinal = 0x20 // AGROUP of linux/acct.h
)

// listener receives the reports of one process's threads.
type listener struct {
	file   *os.File
	pid    uint32
	family uint16
	ends   ends
}

// errTaskstats means that the kernel does not report ends here.
var errTaskstats = errors.New("cannot listen to the kernel's taskstats")

// listenEnds subscribes to the ends of pid's threads from now on. It needs
// CAP_NET_ADMIN, and the host's own network, user and pid namespaces.
func listenEnds(pid int) (*listener, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTaskstats, os.NewSyscallError("socket", err))
	}
	l := &listener{file: os.NewFile(uintptr(fd), "taskstats"), pid: uint32(pid)}
	if err := l.register(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errTaskstats, err), l.close())
	}
	return l, nil
}

func (l *listener) close() error { return l.file.Close() }

func (l *listener) fd() int { return int(l.file.Fd()) }

// register asks for the reports of all processors, behind the filter.
func (l *listener) register() error {
	// The kernel answers at once or never.
	limit := unix.Timeval{Sec: 5}
	err := errors.Join(unix.Bind(l.fd(), &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
		unix.SetsockoptTimeval(l.fd(), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	if err != nil {
		return err
	}
	if l.family, err = l.findFamily(); err != nil {
		return err
	}
	filter := l.filter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(l.fd(), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	cpus, err := os.ReadFile(cpusPossible)
	if err != nil {
		return err
	}
	_, err = l.ask(l.family, taskstatsGet, taskstatsVersion, taskstatsCPUMask, strings.TrimSpace(string(cpus))+"\x00")
	return err
}

// findFamily asks for the number of the taskstats family: generic netlink assigns numbers
// at boot.
func (l *listener) findFamily() (uint16, error) {
	answer, err := l.ask(unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, 1, unix.CTRL_ATTR_FAMILY_NAME, taskstatsName)
	if err != nil {
		return 0, err
	}
	for rest := answer; len(rest) >= unix.SizeofNlAttr; {
		length, kind := binary.NativeEndian.Uint16(rest), binary.NativeEndian.Uint16(rest[2:])
		if length < unix.SizeofNlAttr || int(length) > len(rest) {
			break
		}
		if kind == unix.CTRL_ATTR_FAMILY_ID && length >= unix.SizeofNlAttr+2 {
			return binary.NativeEndian.Uint16(rest[unix.SizeofNlAttr:]), nil
		}
		rest = rest[min(int(length+3)&^3, len(rest)):]
	}
	return 0, errors.New("cannot read the number of its protocol")
}

// genlHeader is the size of struct genlmsghdr.
const genlHeader = 4

// ask sends one command with one attribute. It returns the attributes of the answer, or nil
// if the kernel only acknowledges.
func (l *listener) ask(family uint16, command, version uint8, attribute uint16, value string) ([]byte, error) {
	length := unix.NLMSG_HDRLEN + genlHeader + unix.SizeofNlAttr + len(value)
	m := binary.NativeEndian.AppendUint32(nil, uint32((length+3)&^3))
	m = binary.NativeEndian.AppendUint16(m, family)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	m = append(m, make([]byte, 8)...) // sequence number and port id stay 0: there is one request at a time
	m = append(m, command, version, 0, 0)
	m = binary.NativeEndian.AppendUint16(m, uint16(unix.SizeofNlAttr+len(value)))
	m = binary.NativeEndian.AppendUint16(m, attribute)
	m = append(append(m, value...), make([]byte, (4-len(value)%4)%4)...)
	if err := unix.Sendto(l.fd(), m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	var attributes []byte
	for {
		var buffer [messageSize]byte
		n, _, err := unix.Recvfrom(l.fd(), buffer[:], 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, os.NewSyscallError("recvfrom", err)
		case n < unix.NLMSG_HDRLEN+genlHeader:
			return nil, errors.New("the kernel answers with nothing")
		}
		switch binary.NativeEndian.Uint16(buffer[atType:]) {
		case unix.NLMSG_ERROR: // also for success: struct nlmsgerr begins with the code
			if code := int32(binary.NativeEndian.Uint32(buffer[unix.NLMSG_HDRLEN:])); code != 0 {
				return nil, unix.Errno(-code)
			}
			return attributes, nil
		case unix.GENL_ID_CTRL:
			attributes = append([]byte{}, buffer[unix.NLMSG_HDRLEN+genlHeader:n]...)
		}
		// An end that is reported before this answer is not that of pid, which still waits.
	}
}

// messageSize has room for two reports, the most in one message.
const messageSize = 4096

// filter accepts everything that is not a report, and the reports of the process's
// first and last threads: those are needed, and too few to fill the queue. A socket
// filter reads numbers in network byte order.
func (l *listener) filter() []unix.SockFilter {
	family := uint32(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, l.family)))
	pid := binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, l.pid))
	load := func(size uint16, at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_ABS | size, K: at}
	}
	jump := func(how uint16, value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | how, Jt: yes, Jf: no, K: value}
	}
	return []unix.SockFilter{
		// Not a report of this family, but an answer: accepted.
		load(unix.BPF_H, atType),
		jump(unix.BPF_JEQ, family, 0, 6),
		// The first thread has the process's number: accepted.
		load(unix.BPF_W, atThread),
		jump(unix.BPF_JEQ, pid, 4, 0),
		// Otherwise only the last thread of the process is accepted.
		load(unix.BPF_B, atFlags),
		jump(unix.BPF_JSET, flagFinal, 0, 3),
		load(unix.BPF_W, atProcess),
		jump(unix.BPF_JEQ, pid, 0, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
}

// drain reads what is in the queue, without waiting.
func (l *listener) drain() {
	for {
		var buffer [messageSize]byte
		n, from, err := unix.Recvfrom(l.fd(), buffer[:], unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return
		case err != nil: // after ENOBUFS the queue still has messages
			l.ends.lost = true
			if err != unix.ENOBUFS {
				return
			}
			continue
		}
		// Any process may send to a socket of netlink; the kernel has the number 0.
		if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
			continue
		}
		if t, ok := l.parse(buffer[:n]); ok {
			l.ends.take(l.pid, t)
		}
	}
}

// parse reads a report.
func (l *listener) parse(message []byte) (t threadEnd, ok bool) {
	if len(message) < atProcess+4 || binary.NativeEndian.Uint16(message[atType:]) != l.family {
		return t, false
	}
	return threadEnd{
		thread: binary.NativeEndian.Uint32(message[atThread:]), process: binary.NativeEndian.Uint32(message[atProcess:]),
		status: unix.WaitStatus(binary.NativeEndian.Uint32(message[atStatus:])), final: message[atFlags]&flagFinal != 0,
	}, true
}

// until receives reports until the process has ended.
func (l *listener) until(p *pidfd.Process) {
	for {
		polled := []unix.PollFd{{Fd: int32(p.FD()), Events: unix.POLLIN}, {Fd: int32(l.fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		// Reports are in the queue before the process counts as ended, so drain comes first.
		if n > 0 {
			l.drain()
		}
		if n > 0 && polled[0].Revents != 0 {
			return
		}
	}
}
