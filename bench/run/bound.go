package run

import (
	"fmt"
	"os"

	"clove.run/clove/agent"
	"clove.run/clove/bench/files"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// bindEnv shows the folder for /env to a command of a set-up. It is the host's, which the
// limit on the layer does not bound: the command may write no file above that limit.
func bindEnv(q *resolve.Request, dir string) error {
	most, err := agent.ParseSize(q.Text(settings.Disk))
	if err != nil {
		return agent.Failed("--disk", err)
	}
	q.Add(settings.Volume, dir+":/env")
	q.Add(settings.Ulimit, fmt.Sprintf("fsize=%d", most))
	return nil
}

// checkEnv refuses a folder that has become larger than the limit on the disk.
func checkEnv(e suite.Environment, dir, disk string) error {
	most, err := agent.ParseSize(disk)
	if err != nil {
		return err
	}
	used, err := files.Used(dir)
	if err != nil {
		return agent.Failed("environments."+e.Name, err)
	}
	if used <= most {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "environments." + e.Name, Message: fmt.Sprintf("its set-up has left %d bytes at /env, and may leave %d", used, most),
		Hint: "write a larger disk into the limits of the set-up"}
}

// undone removes what a set-up that failed has left at /env; its logs stay.
func undone(dir string, err error) error {
	if err != nil {
		_ = os.RemoveAll(dir) // the next set-up begins with that, too
	}
	return err
}
