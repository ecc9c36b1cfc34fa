package main

import (
	"fmt"
	"strings"
)

// single quotes text for a shell.
func single(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// bashCompletion leaves words that are not flags to bash's own files.
func bashCompletion(commands []completed) string {
	var names []string
	var cases strings.Builder
	for _, c := range commands {
		names = append(names, c.name)
		var flags []string
		for _, f := range c.flags {
			flags = append(flags, "--"+f.long)
		}
		fmt.Fprintf(&cases, "        %s) flags=%s ;;\n", c.name, single(strings.Join(flags, " ")))
	}
	return fmt.Sprintf(`# bash completion for clove
_clove() {
    local current=${COMP_WORDS[COMP_CWORD]} word command= flags=
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
        --) COMPREPLY=(); return ;;
        -*) ;;
        *) command=${command:-$word} ;;
        esac
    done
    if [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W %s -- "$current")
        return
    fi
    if [[ $current == -* ]]; then
        case $command in
%s        esac
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
    fi
}
complete -o bashdefault -o default -F _clove clove
`, single(strings.Join(names, " ")), cases.String())
}

// zshCompletion uses _arguments; in its specifications ':' and brackets are
// syntax.
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
		cases.WriteString("      '*:file:_files' ;;\n")
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

// fishCompletion is one line for each flag, which fish reads quickly.
func fishCompletion(commands []completed) string {
	var b strings.Builder
	b.WriteString("# fish completion for clove\n")
	quote := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
	}
	for _, c := range commands {
		fmt.Fprintf(&b, "complete -c clove -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quote(c.usage))
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
