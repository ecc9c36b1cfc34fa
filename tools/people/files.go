package people

import (
	"context"
	"strconv"

	"clove.run/clove/agent"
)

// Files are read and written by processes inside, with the agent's rights: no path of a sandbox means a
// file of the host. Relative paths begin at /workspace.

type readArguments struct {
	place
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

const (
	// readScript prints lines. A FIFO would be waited for.
	readScript = `if [ -d "$1" ]; then echo "$1 is a folder: list_files shows it" >&2; exit 1; fi
if [ -e "$1" ] && ! [ -f "$1" ]; then echo "$1 is no regular file" >&2; exit 1; fi
if [ "$3" -gt 0 ]; then exec sed -n -e "$2,$(($2+$3-1))p" -e "$(($2+$3-1))q" -- "$1"; fi
exec tail -n "+$2" -- "$1"`
	writeScript = `mkdir -p -- "$(dirname -- "$1")" || exit
if [ -e "$1" ] && ! [ -f "$1" ]; then echo "$1 is no regular file" >&2; exit 1; fi
if [ "$2" = append ]; then exec cat >> "$1"; fi
exec cat > "$1"`
	// listScript works with GNU's find, and prints names alone with another.
	listScript = `cd -- "$1" || exit
if find . -maxdepth 0 -printf '' 2>/dev/null; then find . -mindepth 1 -maxdepth "$2" -printf '%y %s %P\n' | sort -k 3 | head -n 2000; exit; fi
find . -mindepth 1 -maxdepth "$2" | sort | head -n 2000`
)

func (b *sandbox) readFile(ctx context.Context, a readArguments) (answer, error) {
	if a.Path == "" || a.Offset < 0 || a.Limit < 0 {
		return answer{}, wrong("offset is the first line, from 1; limit a number of lines", "it needs a path, and no number below 0")
	}
	return b.script(ctx, readScript, nil, a.Path, strconv.Itoa(max(1, a.Offset)), strconv.Itoa(a.Limit))
}

type writeArguments struct {
	place
	Path    string `json:"path"`
	Content string `json:"content"`
	Append  bool   `json:"append"`
}

func (b *sandbox) writeFile(ctx context.Context, a writeArguments) (answer, error) {
	if a.Path == "" {
		return answer{}, wrong("name the file", "path is empty")
	}
	how := "replace"
	if a.Append {
		how = "append"
	}
	done, err := b.script(ctx, writeScript, []byte(a.Content), a.Path, how)
	if err == nil && done.failed == "" {
		done.text = strconv.Itoa(len(a.Content)) + " bytes are written to " + a.Path + " in the sandbox\n" + done.text
	}
	return done, err
}

type listArguments struct {
	place
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}

func (b *sandbox) listFiles(ctx context.Context, a listArguments) (answer, error) {
	if a.Path == "" {
		a.Path = "."
	}
	if a.Depth == 0 {
		a.Depth = 1
	}
	if a.Depth < 1 || a.Depth > 16 {
		return answer{}, wrong("use 1 to 16", "depth is %d", a.Depth)
	}
	return b.script(ctx, listScript, nil, a.Path, strconv.Itoa(a.Depth))
}

// script runs one of the scripts above.
func (b *sandbox) script(ctx context.Context, script string, input []byte, args ...string) (answer, error) {
	return b.exec(ctx, agent.Exec{Command: append([]string{"sh", "-c", script, "sh"}, args...)}, 0, input)
}
