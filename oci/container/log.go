package container

import (
	"errors"
	"os"

	"github.com/sirupsen/logrus"
)

// Log is where libcontainer's messages and the program's last error go. Shims
// read the last line of level error from it.
type Log struct {
	File  string // "": standard error
	JSON  bool
	Debug bool
}

// LogFormat reports whether the format is JSON, or that there is no such format.
func LogFormat(name string) (json bool, err error) {
	switch name {
	case "", "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, errors.New("invalid log-format: " + name)
}

// Open makes l the log of this process. Lines are appended, because several calls for one
// container share a file, and synced: a shim reads them after this program has ended,
// however it ended.
func (l Log) Open() error {
	if l.Debug {
		logrus.SetLevel(logrus.DebugLevel)
	}
	if l.JSON {
		logrus.SetFormatter(new(logrus.JSONFormatter))
	}
	if l.File == "" {
		return nil
	}
	file, err := os.OpenFile(l.File, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_SYNC, 0o644)
	if err != nil {
		return err
	}
	logrus.SetOutput(file)
	return nil
}

// Error writes one line of level error.
func (Log) Error(text string) { logrus.Error(text) }
