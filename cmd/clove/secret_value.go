package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/secrets"
)

// readHidden reads a value: from a terminal one line, which is not shown while it is typed, else all. This process leaves no core
// dump behind.
func readHidden(from io.Reader) ([]byte, error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, err
	}
	most := int64(secrets.ValueMost + 3) // with the end of its line; one more byte is refused later
	file, is := from.(*os.File)
	if !is {
		return io.ReadAll(io.LimitReader(from, most))
	}
	modes, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	if err != nil { // no terminal
		return io.ReadAll(io.LimitReader(from, most))
	}
	hidden := *modes
	hidden.Lflag &^= unix.ECHO
	fmt.Fprint(os.Stderr, "value: ")
	if err := unix.IoctlSetTermios(int(file.Fd()), unix.TCSETS, &hidden); err != nil {
		return nil, err
	}
	defer func() {
		_ = unix.IoctlSetTermios(int(file.Fd()), unix.TCSETS, modes) // the terminal may have gone
		fmt.Fprintln(os.Stderr)
	}()
	line, err := bufio.NewReader(io.LimitReader(file, most)).ReadBytes('\n')
	if err == io.EOF {
		err = nil
	}
	return line, err
}
