package verbs

import "strings"

// Usage is what a usage line says.
type Usage struct {
	Flags []string // as the line spells them, with dashes
	Args  []Arg
}

// Arg is a placeholder for an argument, or for several.
type Arg struct {
	Name, Text     string // Text is as the line has it, with brackets and dots
	Optional, Many bool
}

// Parse reads a usage line. takesValue says of a flag outside of brackets, as the line spells it,
// whether the next token is its value.
func Parse(line string, takesValue func(flag string) bool) (u Usage) {
	all, names := tokens(line), 0 // of the command and its verb
	for i := 1; i < len(all); i++ {
		name, optional, many := stripped(all[i])
		switch {
		case strings.HasPrefix(name, "-"):
			u.addFlags(name)
			if !optional && takesValue(name) {
				i++
			}
		case optional && isName(name): // [flags]
		case len(u.Flags)+len(u.Args) == 0 && names < 2 && isName(name):
			names++
		default:
			u.Args = append(u.Args, Arg{name, all[i], optional, many})
		}
	}
	return u
}

// Takes reports whether the line allows so many arguments.
func (u Usage) Takes(count int) bool {
	least, most := 0, len(u.Args)
	for _, a := range u.Args {
		if !a.Optional {
			least++
		}
		if a.Many {
			most = max(count, most)
		}
	}
	return least <= count && count <= most
}

// addFlags adds the flags of "--csv|--json", or the one of "--uses N".
func (u *Usage) addFlags(text string) {
	for _, choice := range strings.Split(text, "|") {
		if flag, _, _ := strings.Cut(choice, " "); strings.HasPrefix(flag, "-") {
			u.Flags = append(u.Flags, flag)
		}
	}
}

// isName reports whether a token is a name, and no placeholder, which has capital letters.
func isName(name string) bool { return name == strings.ToLower(name) }

// tokens splits a line at the blanks outside of brackets.
func tokens(line string) (all []string) {
	depth := 0
	return strings.FieldsFunc(line, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return r == ' ' && depth == 0
	})
}

// stripped takes brackets and dots from a token: [NAME...] and [NAME]... are optional and may be repeated.
func stripped(token string) (name string, optional, many bool) {
	name, many = strings.CutSuffix(token, "...")
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		name, optional = name[1:len(name)-1], true
	}
	name, inside := strings.CutSuffix(name, "...")
	return name, optional, many || inside
}
