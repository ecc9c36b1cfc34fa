package imports

import (
	"slices"
	"strings"
)

// claudeTools are tools of Claude Code whose permissions no operating system holds.
var claudeTools = []string{"Agent", "AskUserQuestion", "BashOutput", "ExitPlanMode", "Glob", "Grep", "KillShell", "LSP", "ListMcpResourcesTool", "MultiEdit", "NotebookEdit",
	"PowerShell", "ReadMcpResourceTool", "Skill", "SlashCommand", "Task", "TodoWrite", "ToolSearch", "WebSearch", "Write"}

// textRule is why rules for commands are refused.
const textRule = "it compares a command as text, and a shell has many ways to write one: a sandbox holds what a command does, not how it is written; files.execute names the programs that run"

// rule splits Tool(specifier).
func rule(text string) (tool, specifier string, ok bool) {
	tool, rest, found := strings.Cut(strings.TrimSpace(text), "(")
	if !found {
		return tool, "", tool != ""
	}
	specifier, ok = strings.CutSuffix(rest, ")")
	if specifier == "*" {
		specifier = ""
	}
	return tool, specifier, ok && tool != ""
}

// rulePath turns the path of a rule into one of the host, or of the workspace: there // begins
// an absolute path, and / one of the project.
func rulePath(specifier string) string {
	if rest, absolute := strings.CutPrefix(specifier, "//"); absolute {
		return "/" + rest
	}
	if rest, ofProject := strings.CutPrefix(specifier, "/"); ofProject {
		return "./" + rest
	}
	return specifier
}

// allowRule reads a rule of permissions.allow. To leave out what a tool may do is narrower.
func (r *reader) allowRule(setting, text string) {
	tool, specifier, ok := rule(text)
	domain, isDomain := strings.CutPrefix(specifier, "domain:")
	switch {
	case !ok:
		r.refuse(setting, "it is no rule: write Tool or Tool(specifier)")
	case tool == "Bash" && specifier == "":
		r.note(setting, "carried: every command runs, inside")
	case tool == "Bash":
		r.refuse(setting, textRule)
	case tool == "WebFetch" && isDomain && domain != "*":
		r.allowName(setting, domain)
	case tool == "WebFetch":
		r.refuse(setting, "it names no domain: write WebFetch(domain:NAME) for each")
	case (tool == "Read" || tool == "Edit") && specifier == "":
		r.note(setting, "narrowed: to what appears inside")
	case tool == "Read" || tool == "Edit":
		if p, ok := r.place(setting, rulePath(specifier), false); ok && tool == "Read" {
			r.reads = append(r.reads, p)
		} else if ok {
			r.writes = append(r.writes, p)
		}
	case isTool(tool):
		r.note(setting, "narrowed: it is a tool of the program, which runs inside")
	default:
		r.refuse(setting, "no such tool is known")
	}
}

// denyRule reads a rule of permissions.deny, which beats all that is allowed.
func (r *reader) denyRule(setting, text string) {
	tool, specifier, ok := rule(text)
	domain, isDomain := strings.CutPrefix(specifier, "domain:")
	switch {
	case !ok:
		r.refuse(setting, "it is no rule: write Tool or Tool(specifier)")
	case tool == "Bash":
		r.refuse(setting, textRule)
	case tool == "WebFetch" && isDomain:
		r.denyName(setting, domain)
	case (tool == "Read" || tool == "Edit") && specifier != "":
		if p, ok := r.place(setting, rulePath(specifier), false); ok && tool == "Read" {
			p.firm = true
			r.hides = append(r.hides, p)
		} else if ok {
			r.keeps = append(r.keeps, p)
		}
	case tool == "WebFetch", tool == "Read", tool == "Edit", isTool(tool):
		r.refuse(setting, "it is a tool of the program, which a sandbox does not know: the program itself has to refuse it")
	default:
		r.refuse(setting, "no such tool is known")
	}
}

func isTool(tool string) bool {
	return slices.Contains(claudeTools, tool) || strings.HasPrefix(tool, "mcp__")
}
