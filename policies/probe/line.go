package probe

import "strconv"

// Orders are actions as the probe's argument has them. The format is this package's own:
// that of package encoding/json would need too much, see the package's description.
func Orders(all []Try) string {
	text := ""
	for _, t := range all {
		fields := []string{t.Kind, t.What, strconv.FormatBool(t.UDP), strconv.Itoa(int(t.Number))}
		for _, arg := range t.Args {
			fields = append(fields, strconv.FormatUint(arg, 10))
		}
		text += joined(fields)
	}
	return text
}

// ParseOrders reverses Orders; ok is false for another text.
func ParseOrders(text string) (all []Try, ok bool) {
	for text != "" {
		var fields []string
		if fields, text, ok = split(text); !ok || len(fields) != 10 {
			return nil, false
		}
		t := Try{Kind: fields[0], What: fields[1], UDP: fields[2] == "true"}
		number, err := strconv.ParseInt(fields[3], 10, 32)
		t.Number = int32(number)
		for i := range t.Args {
			if err == nil {
				t.Args[i], err = strconv.ParseUint(fields[4+i], 10, 64)
			}
		}
		if err != nil {
			return nil, false
		}
		all = append(all, t)
	}
	return all, true
}

// Line is what the probe writes.
func (f Found) Line() string {
	return joined(append([]string{strconv.FormatBool(f.Done), strconv.Itoa(f.Errno), f.Detail, strconv.FormatBool(f.Untried), strconv.FormatBool(f.Killed)}, f.Addresses...))
}

// ParseFound reverses Line; ok is false for another text. A line comes from a sandbox, so
// it may be anything.
func ParseFound(line string) (f Found, ok bool) {
	fields, rest, ok := split(line)
	if !ok || rest != "" || len(fields) < 5 {
		return f, false
	}
	errno, err := strconv.Atoi(fields[1])
	return Found{Done: fields[0] == "true", Errno: errno, Detail: fields[2], Untried: fields[3] == "true", Killed: fields[4] == "true", Addresses: fields[5:]}, err == nil
}

// joined is a line of quoted fields.
func joined(fields []string) string {
	line := ""
	for _, field := range fields {
		line += strconv.Quote(field)
	}
	return line + "\n"
}

// split takes the first line off a text.
func split(text string) (fields []string, rest string, ok bool) {
	for text != "" && text[0] != '\n' {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil || quoted[0] != '"' {
			return nil, "", false
		}
		field, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, "", false
		}
		fields, text = append(fields, field), text[len(quoted):]
	}
	if text != "" {
		text = text[1:]
	}
	return fields, text, len(fields) > 0
}
