package policies

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"clove.run/clove/policies/settings"
)

// form is a policy as a struct with json tags, for the readers and writers of such: the head,
// and a field for each row with a key, in the order of the table. It is made at its first use:
// what a package makes at its start, each start of a run pays for twice.
var form = sync.OnceValue(func() reflect.Type { return formOf[Head](policyKey) })

func formOf[H any](keyOf func(*settings.Setting) string) reflect.Type {
	head := reflect.TypeFor[H]()
	return reflect.StructOf(append([]reflect.StructField{{Name: head.Name(), Type: head, Anonymous: true}}, fieldsOf(keyOf, "")...))
}

func policyKey(s *settings.Setting) string { return s.Key }

// types are what fields hold.
var types = map[settings.Form]reflect.Type{
	settings.String: reflect.TypeFor[string](), settings.Amount: reflect.TypeFor[Text](), settings.List: reflect.TypeFor[[]string](), settings.Ports: reflect.TypeFor[[]uint16](),
	settings.Switch: reflect.TypeFor[*bool](), settings.Map: reflect.TypeFor[map[string]string](), settings.Amounts: reflect.TypeFor[map[string]Text](),
}

// fieldsOf are the fields of what holds keys: files, or the document itself.
func fieldsOf(keyOf func(*settings.Setting) string, holder string) (fields []reflect.StructField) {
	added := map[string]bool{"": true}
	for i := range settings.All() {
		s := &settings.All()[i]
		rest, below := strings.CutPrefix(keyOf(s), holder)
		name, _, nested := strings.Cut(rest, ".")
		if !below || added[name] {
			continue
		}
		added[name] = true
		field := reflect.StructField{Name: fieldPrefix + name, Type: types[s.Form], Tag: tagOf(name+",omitempty", cmp.Or(s.Doc, s.Usage), s.Enum)}
		if nested {
			field.Type, field.Tag = reflect.StructOf(fieldsOf(keyOf, name+".")), tagOf(name+",omitzero", settings.Groups[name], "")
		}
		fields = append(fields, field)
	}
	return fields
}

func tagOf(name, doc, enum string) reflect.StructTag {
	tag := "json:" + strconv.Quote(name) + " doc:" + strconv.Quote(doc)
	if enum != "" {
		tag += " enum:" + strconv.Quote(enum)
	}
	return reflect.StructTag(tag)
}

// fieldPrefix makes a name of Go's from a key.
const fieldPrefix = "F_"

// ofForm takes the values out of a form.
func ofForm(of reflect.Value) Document {
	return Document{of.Field(0).Interface().(Head), valuesOf(of)}
}

func valuesOf(of reflect.Value) (v settings.Values) {
	take(&v, of, "")
	return v
}

// take takes the values of what holds keys.
func take(v *settings.Values, of reflect.Value, holder string) {
	for i := range of.NumField() {
		field := of.Field(i)
		if field.IsZero() {
			continue
		}
		name, isKey := strings.CutPrefix(of.Type().Field(i).Name, fieldPrefix)
		switch {
		case !isKey: // the head
		case field.Kind() == reflect.Struct:
			take(v, field, name+".")
		default:
			v.SetList(settings.Find(holder+name).Name(), textsOf(field))
		}
	}
}

func textsOf(field reflect.Value) []string {
	texts := []string{}
	switch field.Kind() {
	case reflect.Slice:
		for i := range field.Len() {
			texts = append(texts, fmt.Sprint(field.Index(i)))
		}
	case reflect.Map:
		for name, text := range field.Seq2() {
			texts = append(texts, name.String()+"="+text.String())
		}
		slices.Sort(texts)
	default:
		texts = append(texts, fmt.Sprint(reflect.Indirect(field)))
	}
	return texts
}

// MarshalJSON writes the document as its form.
func (d Document) MarshalJSON() ([]byte, error) {
	return marshal(form(), d.Head, d.Values, policyKey)
}

// marshal writes a head and values as their form.
func marshal(form reflect.Type, head any, v settings.Values, keyOf func(*settings.Setting) string) ([]byte, error) {
	of := reflect.New(form).Elem()
	of.Field(0).Set(reflect.ValueOf(head))
	for i := range settings.All() {
		s := &settings.All()[i]
		if texts, has := v[s.Name()]; has && keyOf(s) != "" {
			field := of
			for name := range strings.SplitSeq(keyOf(s), ".") {
				field = field.FieldByName(fieldPrefix + name)
			}
			if err := enter(field, texts); err != nil {
				return nil, fmt.Errorf("%s: %w", keyOf(s), err)
			}
		}
	}
	return json.Marshal(of.Interface())
}

// UnmarshalJSON reads the form, and refuses keys that it does not have.
func (d *Document) UnmarshalJSON(text []byte) error {
	of := reflect.New(form())
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(of.Interface()); err != nil {
		return err
	}
	*d = ofForm(of.Elem())
	return nil
}

// enter puts texts into a field.
func enter(field reflect.Value, texts []string) error {
	switch field.Kind() {
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 0, len(texts)))
		for _, text := range texts {
			item := reflect.New(field.Type().Elem()).Elem()
			if err := enterText(item, text); err != nil {
				return err
			}
			field.Set(reflect.Append(field, item))
		}
	case reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
		for _, entry := range texts {
			name, text, _ := strings.Cut(entry, "=")
			field.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(text).Convert(field.Type().Elem()))
		}
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		field.Elem().SetBool(slices.Equal(texts, []string{"true"}))
	default:
		field.SetString(strings.Join(texts, ""))
	}
	return nil
}

func enterText(item reflect.Value, text string) error {
	if item.Kind() == reflect.String {
		item.SetString(text)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	item.SetUint(n)
	return err
}
