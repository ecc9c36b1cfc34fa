package netns

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Queues reads what the netlink sockets of one namespace hold: answers that no process has
// read yet. The kernel charges them to no cgroup. A Queues keeps the namespace alive until
// Close.
type Queues struct{ file *os.File }

// OpenQueues opens the queues of the namespace that the process pid is in. The open file
// keeps showing that namespace after the process ends.
func OpenQueues(pid int) (*Queues, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/net/netlink", pid))
	if err != nil {
		return nil, fmt.Errorf("cannot watch netlink sockets: %w", err)
	}
	return &Queues{file}, nil
}

// Bytes is the present sum of all queues.
func (q *Queues) Bytes() (int64, error) {
	// The file is kept open and read from its beginning each time: the process whose /proc
	// entry it came from may be gone.
	if _, err := q.file.Seek(0, 0); err != nil {
		return 0, fmt.Errorf("cannot read netlink sockets: %w", err)
	}
	var sum int64
	lines := bufio.NewScanner(q.file)
	for lines.Scan() {
		held, err := queuedIn(lines.Bytes())
		if err != nil {
			return 0, err
		}
		sum += held
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("cannot read netlink sockets: %w", err)
	}
	return sum, nil
}

// Columns of /proc/net/netlink: sk Eth Pid Groups Rmem Wmem Dump …
const columnReceive, columnSend = 4, 5

// queuedIn sums both queues of one line: a socket pays for neither.
func queuedIn(line []byte) (int64, error) {
	fields := bytes.Fields(line)
	if len(fields) > 0 && string(fields[0]) == "sk" {
		return 0, nil // the heading
	}
	if len(fields) <= columnSend {
		return 0, fmt.Errorf("cannot read netlink sockets: %q", line)
	}
	received, err := strconv.ParseInt(string(fields[columnReceive]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cannot read netlink sockets: %w", err)
	}
	sent, err := strconv.ParseInt(string(fields[columnSend]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cannot read netlink sockets: %w", err)
	}
	return received + sent, nil
}

// Close releases the namespace. It accepts nil.
func (q *Queues) Close() error {
	if q == nil {
		return nil
	}
	return q.file.Close()
}
