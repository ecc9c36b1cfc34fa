// Package config reads /etc/clove/models.yaml: the providers of language models, the names
// under which agents reach them, what a token costs, and which users may use what.
// docs/models.yaml shows every key. An unknown or repeated key is refused: whoever wrote it
// believes that it has an effect.
//
//	providers    who answers: family, URL, name of the key, users, budgets, limits, times
//	models       the names that agents use; each has targets (a provider and its name for the model)
//	aliases      other names of models
//	prices       nano-dollars for a token, before those of the built-in table
//
// Without any file there are the providers echo and scripted and a model of each, for every
// user and for nothing. There is also a table of prices for models of OpenAI and Anthropic.
// It applies to their own hosts only: others ask other prices for the same names.
//
// A Config is a value, which whoever decides asks: Resolve leads from a name to targets,
// Price.Most says what to reserve for a call, and Price.Cost what it did cost.
//
// The package reads one file (Load) and the names of users and groups. It opens no key: it
// knows the name of one, and models/upstream reads it.
package config
