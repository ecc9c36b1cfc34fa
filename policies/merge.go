package policies

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// Over lays d over what it extends. Name, description, extends and widen stay d's.
func (d Document) Over(base Document) Document {
	drop, deny := base.Capabilities.Drop, base.Network.Deny
	ulimits, set, pass := base.Ulimits, base.Environment.Set, base.Environment.Pass
	merged := layered(reflect.ValueOf(base), reflect.ValueOf(d)).Interface().(Document)
	merged.Capabilities.Drop = added(drop, d.Capabilities.Drop)
	merged.Network.Deny = added(deny, d.Network.Deny)
	merged.Environment.Pass = added(pass, d.Environment.Pass)
	merged.Ulimits = addedKeys(ulimits, d.Ulimits)
	merged.Environment.Set = addedKeys(set, d.Environment.Set)
	// A budget replaces the one of its dimension only.
	merged.Budgets = slices.Clone(d.Budgets)
	for _, text := range base.Budgets {
		dimension, _, _ := strings.Cut(text, "=")
		if !slices.ContainsFunc(d.Budgets, func(own string) bool { return strings.HasPrefix(own, dimension+"=") }) {
			merged.Budgets = append(merged.Budgets, text)
		}
	}
	// Swap follows memory: a document that names only memory means no swap beyond it.
	if d.Limits.Memory != "" && d.Limits.MemorySwap == "" {
		merged.Limits.MemorySwap = ""
	}
	// What was allowed means nothing where there is no network, or no rule. What was denied
	// stays, for a document that extends this one.
	if d.Network.Mode == agent.NetworkNone || d.Network.Mode == agent.NetworkHost {
		merged.Network.Allow, merged.Network.DNS, merged.Network.HostPorts = d.Network.Allow, d.Network.DNS, d.Network.HostPorts
	}
	if d.Files.Root == rootWritable {
		merged.Files.Writable, merged.Files.Execute = d.Files.Writable, d.Files.Execute
	}
	merged.Name, merged.Description, merged.Extends, merged.Widen = d.Name, d.Description, d.Extends, d.Widen
	return merged
}

// layered is base with each value that over has.
func layered(base, over reflect.Value) reflect.Value {
	result := reflect.New(base.Type()).Elem()
	result.Set(base)
	for i := range base.NumField() {
		switch field := over.Field(i); {
		case field.Kind() == reflect.Struct:
			result.Field(i).Set(layered(base.Field(i), field))
		case !field.IsZero():
			result.Field(i).Set(field)
		}
	}
	return result
}

func added[T comparable](base, more []T) []T {
	all := slices.Clone(base)
	for _, item := range more {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all
}

func addedKeys[V any](base, more map[string]V) map[string]V {
	if len(base)+len(more) == 0 {
		return nil
	}
	all := maps.Clone(base)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, more)
	return all
}
