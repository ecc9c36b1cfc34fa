// Package verbs derives what a command takes and shows from its usage line and from its method's row.
//
// A usage line such as
//
//	clove grant give [--uses N] [--reason TEXT] AGENT GRANT
//
// is shown in the help, and says what the command takes: its verb, its flags, and how many arguments.
// Parse reads it. An Input names the field of a method's parameters that a placeholder or a flag fills,
// and how its text is read; Fill fills the parameters. Rows makes a table of a method's result by tags of
// its fields: `col:"EXPIRES,until"` is a column with the heading EXPIRES, whose cells have the form until.
//
// It refuses to know commands, cloved and terminals: values in, values out. The caller has the table of
// inputs and the table of forms.
package verbs
