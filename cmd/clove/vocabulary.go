package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/cmd/clove/verbs"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/policies/settings"
)

// inputs are the placeholders and flags of usage lines that fill parameters of methods. Each has one
// meaning in all commands that call a method. A flag that is neither here nor in readByHand is refused.
func inputs() map[string]verbs.Input {
	all := map[string]verbs.Input{
		"ACCOUNT":          {Field: "Account", Read: verbs.One(func(text string) (string, error) { return accountKey(text), nil })},
		"AGENT":            {Field: "Run"},
		"BODY":             {Field: "Body", Read: verbs.One(readBody)},
		"BUDGET":           {Field: "Limits"},
		"DIMENSION":        {Field: "Dimension", Read: verbs.One(budget.ParseDimension)},
		"DIMENSION=AMOUNT": {Field: "Amounts", Read: readAmounts},
		"GRANT":            {Field: "Grant"},
		"HOME":             {Field: "Home"},
		"JOB":              {Field: "ID"},
		"ID":               {Field: "ID"},
		"LETTER":           {Field: "ID"},
		"MAILBOX":          {Field: "Mailbox"},
		"KEY":              {Field: "Path"},
		"MANIFEST":         {Field: "Name"},
		"MODEL":            {Field: "Model"},
		"NAME":             {Field: "Name"},
		"NAME|ID":          {Field: "Run"},
		"NEW":              {Field: "Name"},
		"QUEUE":            {Field: "Queue"},
		"RECEIVER":         {Field: "To"},
		"SHA256":           {Field: "Blob"},
		"TAG":              {Field: "Tags"},
		"ARGUMENTS":        {}, // fillCall
		"FILE":             {}, // fillTool
		"TOOL":             {Field: "Tool"},
		"VALUE":            {Field: "Value", Read: verbs.One(readValue)},
		"WHAT":             {Field: "What"},

		"--after":       {Field: "After", Read: readNumber[uint64](flagAfter, 63, "write a number; 0 shows all that is kept")},
		"--at-end":      {Field: "AtEnd"},
		"--attempts":    {Field: "Attempts", Read: readNumber[int](flagAttempts, 31, "write a number")},
		"--backoff":     {Field: "BackoffMS", Read: verbs.One(readTime(flagBackoff))},
		"--concurrency": {Field: "Concurrency", Read: readNumber[int](flagConcurrency, 31, "write a number")},
		"--deadline":    {Field: "DeadlineMS", Read: verbs.One(readTime(flagJobDeadline))},
		"--delay":       {Field: "DelayMS", Read: verbs.One(readTime(flagJobDelay))},
		"--lease":       {Field: "LeaseMS", Read: verbs.One(readTime(flagLease))},
		"--manifest":    {Field: "Manifest"},
		"--state":       {Field: "State"},
		"--depth":       {Field: "Depth", Read: readNumber[int](flagDepth, 31, "use 1 to 100")},
		"--down":        {Field: "Down"},
		"--expires":     {Field: "Expires", Read: verbs.One(readExpires)},
		"--for":         {Field: "ForMS", Read: verbs.One(readTime(flagFor))},
		"--force":       {Field: "Force"},
		"--fresh":       {Field: "Fresh"},
		"--from":        {Field: "From"},
		"--kind":        {Field: "Kind"},
		"--last":        {Field: "Last", Read: readNumber[int](flagLast, 31, "write a number")},
		"--name":        {Field: "Name"},
		"--namespace":   {Field: "Namespace"},
		"--owner":       {Field: "Owner", Read: readNumber[uint32](flagOwner, 32, "write a number")},
		"--prefix":      {Field: "Prefix"},
		"--priority":    {Field: "Priority", Read: readNumber[int](flagMailPriority, 31, "use 0 to 9")},
		"--reason":      {Field: "Reason"},
		"--run":         {Field: "Run"},
		"--since":       {Field: "Since", Read: verbs.One(readSince)},
		"--tag":         {Field: "Tag"},
		"--text":        {Field: "Text"},
		"--time":        {Field: "GraceNS", Read: verbs.One(readGrace)},
		"--to":          {Field: "To"},
		"--until":       {Field: "Until", Read: verbs.One(readSince)},
		"--uses":        {Field: "Uses", Read: verbs.One(readUses)},
		"--within":      {Field: "ExpiresMS", Read: verbs.One(readTime(flagWithin))},
		"--verdict":     {Field: "Verdict"},
		"--wake":        {Field: "Wake"},
	}
	for _, flag := range readByHand {
		all["--"+flag] = verbs.Input{}
	}
	return all
}

// readByHand are the flags that fill no parameter: they choose what is shown, or the verb that has them reads them.
var readByHand = []string{
	flagJSON, flagFormat, flagQuiet, flagCSV, flagOnce, flagThisRun, flagAlways, flagPolicy, flagYes, flagUndo, flagClear, flagFile, flagSignal, flagFollow,
	flagFromFile, flagSecretHost, flagRequest, flagHeader, flagIn, flagCA, flagPlaceholder, flagSSH, flagKnownHosts, flagUser, flagPlain, flagAll,
	settings.Memory, settings.MemorySwap, settings.CPUs, settings.Pids, settings.Timeout, settings.Allow, settings.Deny, flagNoRules, // of update
}

// readNumber reads a number of so many bits.
func readNumber[T int | uint32 | uint64](flag string, bits int, hint string) func([]string) (any, error) {
	return verbs.One(func(text string) (T, error) {
		n, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			err = invalid(flag, hint, "%q is not a number", text)
		}
		return T(n), err
	})
}

// forms are how cells of tables are written, by the names that the tags of results have for them.
func forms() verbs.Forms {
	now := time.Now()
	return verbs.Forms{
		"age":      func(value any) string { return age(now.Sub(value.(time.Time))) },
		"ascii":    func(value any) string { return quoted(value.(string)) },
		"blob":     func(value any) string { return value.(api.Blob).SHA256 },
		"breaking": func(value any) string { return map[bool]string{true: "breaking", false: "addition"}[value.(bool)] },
		"clock":    func(value any) string { return value.(time.Time).Local().Format(time.TimeOnly) },
		"amount": func(value any) string {
			of := value.(verbs.Of)
			return budget.Dimension(of.Of.(string)).Show(of.Value.(int64))
		},
		"dimension": func(value any) string { return budget.Dimension(value.(string)).Title() },
		"holders": func(value any) string {
			var names []string
			for _, h := range value.([]api.NameHolder) {
				names = append(names, h.Name)
			}
			return strings.Join(names, " ")
		},
		"json":  func(value any) string { return string(value.(json.RawMessage)) },
		"money": func(value any) string { return money(value.(int64)) },
		"ms":    func(value any) string { return (time.Duration(value.(int64)) * time.Millisecond).String() },
		"size":  func(value any) string { return size(value.(int64)) },
		"took":  func(value any) string { return took(value.(int64)) },
		"unusable": func(value any) string {
			if value == "" {
				return ""
			}
			return "cannot be used: " + value.(string)
		},
		"until": func(value any) string { return expiry(value.(time.Time), now) },
		"yesno": func(value any) string { return map[bool]string{true: "yes", false: "no"}[value.(bool)] },
		"words": func(value any) string { return strings.Join(value.([]string), " ") },
	}
}
