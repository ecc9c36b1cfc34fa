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

// LogFormat reports whether a format's name means JSON, or that it means nothing.
func LogFormat(name string) (json bool, err error) {
	switch name {
	case "", "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, errors.New("invalid log-format: " + name)
}

// Open makes it the log of this process, for as long as that lives. Lines are
// appended and synced: a shim reads them when this program is gone, however it ended.
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
