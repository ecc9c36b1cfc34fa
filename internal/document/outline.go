package document

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Outline is which keys a text in YAML or JSON has, whatever they mean.
type Outline struct {
	Top  map[string]string // the keys at the top, with the values that are no lists or maps
	Keys []string          // all keys, at any depth, each as often as it is there
}

// OutlineOf reads the keys of the first document of a text. It follows no alias, so the work is
// that of the text's own length.
func OutlineOf(text []byte) (Outline, error) {
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil {
		return Outline{}, err
	}
	o := Outline{Top: map[string]string{}}
	for _, root := range document.Content {
		o.add(root, true)
	}
	return o, nil
}

// Claims reports whether the text could be a document that Decode reads for clove: version 1,
// and one of the other keys at the top.
func (o Outline) Claims(others ...string) bool {
	if version, err := strconv.ParseInt(o.Top["version"], 0, 64); err != nil || version != 1 {
		return false
	}
	for _, key := range others {
		if _, ok := o.Top[key]; ok {
			return true
		}
	}
	return false
}

func (o *Outline) add(node *yaml.Node, top bool) {
	for i, inner := range node.Content {
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			o.add(inner, false)
			continue
		}
		o.Keys = append(o.Keys, inner.Value)
		if top {
			o.Top[inner.Value] = node.Content[i+1].Value
		}
	}
}

// PlaceOf is the line and column of a key, as limits.memory, in a text that Decode has read;
// empty: it is not there.
func PlaceOf(text []byte, key string) string {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) == 0 {
		return ""
	}
	at := document.Content[0]
	for name := range strings.SplitSeq(key, ".") {
		if at = valueOf(at, name); at == nil {
			return ""
		}
	}
	return positionOf(at)
}

// valueOf is the value of a key in a map; nil: there is none.
func valueOf(node *yaml.Node, key string) *yaml.Node {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}
