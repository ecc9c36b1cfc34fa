package main

import (
	"fmt"
	"strings"
)

// single quotes text for a shell. A quote inside ends the string, adds an escaped one,
// and begins a new string.
func single(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// bashCompletion leaves arguments that are neither flags nor runs to bash's own completion
// of files. Behind "--" it offers nothing: what follows is the agent's.
func bashCompletion(commands []completed) string {
	var names []string
	var cases strings.Builder
	for _, c := range commands {
		names = append(names, c.name)
		var flags []string
		for _, f := range c.flags {
			flags = append(flags, "--"+f.long)
		}
		fmt.Fprintf(&cases, "    %s) words=%s runs=%s flags=%s ;;\n", c.name, single(strings.Join(c.verbs, " ")), single(c.runs), single(strings.Join(flags, " ")))
	}
	return fmt.Sprintf(`# bash completion for clove
_clove() {
    local current=${COMP_WORDS[COMP_CWORD]} word command= first= words= flags= runs=
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
        --) COMPREPLY=(); return ;;
        -*) ;;
        *) if [[ -z $command ]]; then command=$word; else first=${first:-$word}; fi ;;
        esac
    done
    if [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W %s -- "$current")
        return
    fi
    case $command in
%s    esac
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
    elif [[ -n $words && -z $first ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    elif [[ -n $runs ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(clove completion "$runs" 2>/dev/null)" -- "$current")
    fi
}
complete -o bashdefault -o default -F _clove clove
`, single(strings.Join(names, " ")), cases.String())
}

// zshCompletion uses _arguments, in whose specifications ':' and brackets are syntax
// and have to be escaped. "*--flag" allows a flag to be repeated.
func zshCompletion(commands []completed) string {
	var names, cases strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, "[", `\[`, "]", `\]`)
	for _, c := range commands {
		fmt.Fprintf(&names, "    %s\n", single(c.name+":"+escape.Replace(c.usage)))
		fmt.Fprintf(&cases, "  %s)\n    _arguments -s \\\n", c.name)
		for _, f := range c.flags {
			value := ""
			if f.takesValue {
				value = ":" + f.long + ":_files"
			}
			fmt.Fprintf(&cases, "      %s \\\n", single("*--"+f.long+"["+escape.Replace(f.usage)+"]"+value))
		}
		arguments := "'*:file:_files'"
		if c.runs != "" {
			arguments = single(`*:run:{compadd -- $(clove completion ` + c.runs + ` 2>/dev/null)}`)
		}
		if len(c.verbs) > 0 {
			arguments = single("1:word:("+strings.Join(c.verbs, " ")+")") + " " + arguments
		}
		fmt.Fprintf(&cases, "      %s ;;\n", arguments)
	}
	return fmt.Sprintf(`#compdef clove
local -a commands
commands=(
%s)
if (( CURRENT == 2 )); then
  _describe command commands
  return
fi
local command=$words[2]
shift words
(( CURRENT-- ))
case $command in
%sesac
`, names.String(), cases.String())
}

// fishCompletion is one line for each flag, fish's own form.
func fishCompletion(commands []completed) string {
	var b strings.Builder
	b.WriteString("# fish completion for clove\n")
	quote := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
	}
	for _, c := range commands {
		fmt.Fprintf(&b, "complete -c clove -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quote(c.usage))
		for _, verb := range c.verbs {
			fmt.Fprintf(&b, "complete -c clove -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s' -f -a %s\n", c.name, strings.Join(c.verbs, " "), verb)
		}
		if c.runs != "" {
			fmt.Fprintf(&b, "complete -c clove -n '__fish_seen_subcommand_from %s' -f -a '(clove completion %s 2>/dev/null)'\n", c.name, c.runs)
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c clove -n '__fish_seen_subcommand_from %s' -l %s", c.name, f.long)
			if f.short != "" {
				fmt.Fprintf(&b, " -s %s", f.short)
			}
			if f.takesValue {
				b.WriteString(" -r")
			}
			fmt.Fprintf(&b, " -d %s\n", quote(f.usage))
		}
	}
	return b.String()
}
