package agent

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Validate rejects a Spec that cannot be carried out as written: a field without a meaning,
// a limit that no kernel accepts, a text that cannot be shown on one line. It checks values
// only. Whether this host can enforce a limit, and whether a path exists, is checked at the
// start. Every edge calls it: the command line, the API, a manifest.
func (s Spec) Validate() error {
	for _, check := range []func(Spec) error{
		checkIdentity, checkLabels, checkWords, checkUserInside, checkPlaces, Spec.ValidateHome, Spec.ValidateKeep, checkWritable, checkExecute, Spec.ValidateRead, Spec.ValidateLandlock, checkFilter,
		checkProcess, checkNetwork, checkSupervision, checkWeakened, checkKernel, checkStreams, checkShadow,
	} {
		if err := check(s); err != nil {
			return err
		}
	}
	if err := s.Limits.Validate(); err != nil {
		return err
	}
	if n := s.TextBytes(); n > textMost { // last: NaN, which the checks above reject, has no JSON form
		return wrong("spec", "put some of it into files", "the run would have %d bytes of text, and may have %d", n, textMost)
	}
	return nil
}

// TextBytes is the length of the run's JSON as far as the Spec decides it: the Spec itself,
// and the command once more in the record and in the previous record.
func (s Spec) TextBytes() int {
	text, err := json.Marshal(s)
	command, cerr := json.Marshal(s.Command)
	if err != nil || cerr != nil {
		return math.MaxInt // it cannot be stored
	}
	return len(text) + 2*len(command)
}

// wrong makes a KindInvalid error; field is the path of the field in the Spec's JSON.
func wrong(field, hint, format string, values ...any) error {
	return &Error{Kind: KindInvalid, Step: field, Message: fmt.Sprintf(format, values...), Hint: hint}
}

// checkText rejects text that would break a line or control a terminal, and text that is too long.
func checkText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return wrong(field, fmt.Sprintf("use at most %d bytes", most), "it has %d bytes", len(text))
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unshowable):
		return wrong(field, "use letters, digits and punctuation", "%.64q cannot be shown on one line", text)
	}
	return nil
}

// unshowable reports C0 and C1 control characters, DEL, and the two Unicode separators that
// end a line.
func unshowable(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029
}

// checkIdentity is strict because id and name become parts of paths, cgroup names and
// messages.
func checkIdentity(s Spec) error {
	if !s.ID.Valid() {
		return wrong("id", "omit the id, and clove makes one", "%.64q is not an id", string(s.ID))
	}
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	if s.Hostname != "" && !IsHostname(s.Hostname) {
		return wrong("hostname", "use 1 to 63 letters, digits and '-', in parts that are joined by '.'", "%.64q is not a host name", s.Hostname)
	}
	if s.ClockStart != 0 && (s.ClockStart < ClockStartFloor || s.ClockStart > ClockStartCeiling) {
		return wrong("clock_start_ns", "use 1s to ten years, or omit it for the host's clocks", "%s is no start of the clocks", s.ClockStart)
	}
	if err := checkText("policy.name", s.Policy.Name, labelKeyMost); err != nil {
		return err
	}
	if len(s.Policy.Widened) > entriesMost {
		return wrong("policy.widened", fmt.Sprintf("use at most %d", entriesMost), "there are %d", len(s.Policy.Widened))
	}
	for _, text := range s.Policy.Widened {
		if err := checkText("policy.widened", text, labelMost); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"policy.sha256": s.Policy.SHA256, "manifest.name": s.Manifest.Name, "manifest.sha256": s.Manifest.SHA256} {
		if err := checkText(name, text, labelKeyMost); err != nil {
			return err
		}
	}
	return nil
}

// IsHostname checks RFC 1123 syntax within hostnameMost bytes: sethostname(2) takes 64.
func IsHostname(name string) bool {
	if len(name) > hostnameMost {
		return false
	}
	foreign := func(c rune) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") || strings.ContainsFunc(label, foreign) {
			return false
		}
	}
	return true
}

// checkLabels bounds each label and all together, because labels are stored and listed with
// every run. No key has a '=', which separates it from its value.
func checkLabels(s Spec) error {
	if len(s.Labels) > labelsMost {
		return wrong("labels", fmt.Sprintf("use at most %d", labelsMost), "there are %d labels", len(s.Labels))
	}
	all := 0
	for key, value := range s.Labels {
		if key == "" || strings.Contains(key, "=") {
			return wrong("labels", "write KEY=VALUE", "%.64q is not the key of a label", key)
		}
		if err := checkText("labels", key, labelKeyMost); err != nil {
			return err
		}
		if err := checkText("labels", value, labelMost); err != nil {
			return err
		}
		all += len(key) + len(value)
	}
	if all > labelsAllMost {
		return wrong("labels", fmt.Sprintf("use at most %d bytes", labelsAllMost), "all labels together have %d bytes", all)
	}
	return nil
}

// checkWords checks arguments and environment against execve(2), which ends each string at
// a zero byte.
func checkWords(s Spec) error {
	if len(s.Command) == 0 || s.Command[0] == "" {
		return wrong("command", "name a command", "there is nothing to run")
	}
	for field, words := range map[string][]string{"command": s.Command, "env": s.Env} {
		for _, word := range words {
			if strings.ContainsRune(word, 0) {
				return wrong(field, "leave the zero byte out", "%.64q has a zero byte", word)
			}
		}
	}
	for _, entry := range s.Env {
		if key, _, is := strings.Cut(entry, "="); !is || key == "" || strings.ContainsAny(key, " \t\n") {
			return wrong("env", "write KEY=VALUE", "%.64q is not a variable", entry)
		}
	}
	if err := CheckExecSize(s.Command, s.Env, s.Limits.StackBytes(StackUnknown)); err != nil {
		f := FailureOf(err)
		return wrong("command", f.Hint, "%s", f.Message)
	}
	return nil
}

// checkUserInside rejects what would corrupt the sandbox's /etc/passwd: name and home are
// written there.
func checkUserInside(s Spec) error {
	u := s.User
	if u.UID > MaxUser || u.GID > MaxUser {
		return wrong("user", fmt.Sprintf("use ids from 0 to %d", MaxUser), "an agent cannot have the user and group %d:%d", u.UID, u.GID)
	}
	for field, text := range map[string]string{"user.name": u.Name, "user.home": u.Home} {
		if err := checkText(field, text, pathMost); err != nil {
			return err
		}
		if strings.Contains(text, ":") {
			return wrong(field, "leave the colon out", "%.64q has a colon, which ends a field of /etc/passwd", text)
		}
	}
	if u.Home != "" {
		return checkPath("user.home", u.Home)
	}
	return nil
}

// checkPath accepts clean paths only, so that later code may compare them as text.
func checkPath(field, p string) error {
	switch {
	case len(p) > pathMost:
		return wrong(field, fmt.Sprintf("use at most %d bytes", pathMost), "it has %d bytes", len(p))
	case !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0):
		return wrong(field, "write an absolute path without \"..\", for example /data", "%.64q is not an absolute path", p)
	// The record keeps it as JSON, which would name another file.
	case !utf8.ValidString(p):
		return wrong(field, "rename it, or lead a symbolic link there", "%.64q is not UTF-8", p)
	}
	return nil
}

// checkPlaces checks the form of all paths and the targets of mounts. The file at a path may
// change until the start, so only the start looks there.
func checkPlaces(s Spec) error {
	f := s.Files
	if len(f.Prefixes)+len(f.Binds)+len(f.Tmpfs) > entriesMost {
		return wrong("files", fmt.Sprintf("use at most %d", entriesMost), "there are %d prefixes, binds and tmpfs", len(f.Prefixes)+len(f.Binds)+len(f.Tmpfs))
	}
	if f.GitDir != "" && f.Workspace == "" {
		return wrong("files.git_dir", "name the workspace, too", "there is no workspace whose repository it could be")
	}
	paths := map[string][]string{"files.prefixes": f.Prefixes}
	for field, p := range map[string]string{"dir": s.Dir, "files.rootfs": f.Rootfs, "files.workspace": f.Workspace, "files.git_dir": f.GitDir} {
		if p != "" && !(field == "files.git_dir" && p == NoGitDir) {
			paths[field] = []string{p}
		}
	}
	var targets []string
	for _, b := range f.Binds {
		paths["files.binds"] = append(paths["files.binds"], b.Source)
		targets = append(targets, b.Target)
		if b.CopyOnWrite && !b.ReadOnly || b.Secrets && !b.CopyOnWrite {
			return wrong("files.binds", "write read_only and copy_on_write, or omit both and secrets", "%.256s cannot be changed on the host and copied, and only a copied directory is searched for credentials", b.Source)
		}
	}
	for _, t := range f.Tmpfs {
		targets = append(targets, t.Target)
		if t.SizeBytes != 0 {
			if err := checkSize("files.tmpfs", t.SizeBytes, SizeFloor); err != nil {
				return err
			}
		}
		if t.Mode > 0o1777 {
			return wrong("files.tmpfs", "write an octal mode up to 1777", "%o is not a mode", t.Mode)
		}
	}
	for field, all := range paths {
		for _, p := range all {
			if err := checkPath(field, p); err != nil {
				return err
			}
		}
	}
	return checkTargets(targets)
}

// checkTargets rejects two mounts at one target, because the later would hide the earlier,
// and targets in the file systems that libcontainer mounts.
func checkTargets(targets []string) error {
	for i, target := range targets {
		if err := checkPath("files", target); err != nil {
			return err
		}
		if target == "/" || slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(dir string) bool {
			return target == dir || strings.HasPrefix(target, dir+"/")
		}) {
			return wrong("files", "choose another target", "nothing can be mounted at %s", target)
		}
		if slices.Contains(targets[:i], target) {
			return wrong("files", "choose another target for one of them", "two mounts have the target %s", target)
		}
	}
	return nil
}

// checkFilter does not parse the document; package seccomp does, at the start.
func checkFilter(s Spec) error {
	switch {
	case s.Seccomp.Profile == "":
		return wrong("seccomp.profile", "name a profile, for example standard", "no system call filter is named")
	case len(s.Seccomp.Document) > seccompMost:
		return wrong("seccomp.document", fmt.Sprintf("use at most %d bytes", seccompMost), "it has %d bytes", len(s.Seccomp.Document))
	}
	return checkText("seccomp.profile", s.Seccomp.Profile, pathMost)
}

// checkSupervision also rejects pairs of which one could not take effect: a run that keeps
// nothing cannot start again, and one that is always restarted is never free for its
// schedule.
func checkSupervision(s Spec) error {
	// Each takes one of the 128 fanotify groups that the host's root has (fs.fanotify).
	if s.Learn && (s.Detached || s.Foreground) {
		return wrong("learn", "let root learn in the foreground: clove run --learn", "only a run of root's in the foreground is observed")
	}
	r := s.Restart
	switch {
	case r.Policy != "" && !slices.Contains(RestartPolicies, r.Policy):
		return wrong("restart.policy", "write never, on-failure or always", "%.64q is not a restart policy", string(r.Policy))
	case r.Max < 0:
		return wrong("restart.max", "write a maximum of 0 or more", "%d is not a number of restarts", r.Max)
	case s.Remove && r.Policy.Restarts():
		return wrong("remove", "omit one of them", "a run that is removed when it ends cannot be restarted")
	case s.Priority < -PriorityCeiling || s.Priority > PriorityCeiling:
		return wrong("priority", fmt.Sprintf("write a number from -%d to %[1]d", PriorityCeiling), "%d is not a priority", s.Priority)
	case s.StartTimeout != 0 && (s.StartTimeout < StartTimeoutFloor || s.StartTimeout > StartTimeoutCeiling):
		return wrong("start_timeout_ns", fmt.Sprintf("give a time from %s to %s, or omit it", StartTimeoutFloor, StartTimeoutCeiling),
			"%s is not a valid time limit for a step of the start", s.StartTimeout)
	case len(s.After) > entriesMost:
		return wrong("after", fmt.Sprintf("use at most %d", entriesMost), "it names %d runs", len(s.After))
	case s.Schedule != "" && s.Remove:
		return wrong("schedule", "omit one of them", "a run that is removed when it ends cannot be started again by a schedule")
	case s.Schedule != "" && r.Policy == RestartAlways:
		return wrong("schedule", "use on-failure, which applies to each scheduled start separately", "a run that is always restarted never waits for its schedule")
	case s.KeepFiles && s.Schedule == "":
		return wrong("keep_files", "omit it: a restart keeps them anyway", "only a scheduled run begins with new files each time")
	}
	if err := s.Ready.validate(); err != nil {
		return err
	}
	if s.Foreground && (r.Policy.Restarts() || s.Schedule != "" || len(s.After) > 0 || s.Ready.Within > 0) {
		return wrong("foreground", "omit it: only a detached run can wait or start again", "a run in the foreground starts once, and at once")
	}
	for _, name := range s.After {
		if err := checkText("after", name, labelKeyMost); err != nil {
			return err
		}
		if _, _, err := SplitAfter(name); err != nil {
			return err
		}
	}
	return checkText("schedule", s.Schedule, scheduleMost)
}

// checkWeakened bounds the list only. Which controls may be weakened is known to package
// runtime, which rejects the rest at the start.
func checkWeakened(s Spec) error {
	if len(s.AllowUnenforced) > entriesMost {
		return wrong("allow_unenforced", "name each control once", "there are %d", len(s.AllowUnenforced))
	}
	for _, word := range s.AllowUnenforced {
		if err := checkText("allow_unenforced", word, labelKeyMost); err != nil {
			return err
		}
	}
	return nil
}
