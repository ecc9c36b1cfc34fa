package agent

import "time"

// Home names a home that is kept. The same user's runs with the same name for the same folder have
// it, one after the other.
type Home struct {
	Name   string `json:"name"`
	Folder string `json:"folder"` // of the host: the workspace, or where the caller was
}

// HomeDir is where a kept home appears inside.
const HomeDir = "/home/agent"

// ValidateHome checks Files.Home.
func (s Spec) ValidateHome() error {
	const field = "files.home"
	h := s.Files.Home
	switch {
	case h == nil:
		return nil
	case s.User.Home != HomeDir:
		return wrong(field, "run it as the user agent, or omit the kept home", "the home of user %.64s is %.256s, and a kept one is at "+HomeDir, s.User.Name, s.User.Home)
	case !s.Files.StaysWritable(HomeDir):
		return wrong(field, "add "+HomeDir+" to files.writable, or omit the kept home", "a kept home must stay writable")
	}
	if err := ValidateName(h.Name); err != nil {
		return wrong(field, FailureOf(err).Hint, "%.64q is not a name", h.Name)
	}
	for _, b := range s.Files.Binds {
		if b.Target == HomeDir {
			return wrong(field, "choose another target, or omit the kept home", "something else is shown at "+HomeDir)
		}
	}
	for _, t := range s.Files.Tmpfs {
		if t.Target == HomeDir {
			return wrong(field, "choose another target, or omit the kept home", "something else is shown at "+HomeDir)
		}
	}
	return checkPath(field, h.Folder)
}

// KeptHome is a kept home as it is listed. Nothing in it is read for that.
type KeptHome struct {
	ID      string    `json:"id" col:"ID"`
	UID     uint32    `json:"uid" col:"OWNER"`
	Name    string    `json:"name" col:"NAME"`
	Device  uint64    `json:"device"` // of the folder
	Inode   uint64    `json:"inode"`
	Folder  string    `json:"folder" col:"FOLDER,,cut"`      // its path when the home was made
	Bytes   int64     `json:"bytes" col:"SIZE,size"`         // the most that it can have
	Held    int64     `json:"held_bytes" col:"ON DISK,size"` // what it has of the host's disk
	Created time.Time `json:"created"`
	Keep    []string  `json:"keep,omitempty" col:"KEEPS,words"` // kept with it, by their paths inside
	Changed time.Time `json:"changed" col:"CHANGED,age"`
	InUse   bool      `json:"in_use" col:"IN USE,yesno"` // a run has it
}
