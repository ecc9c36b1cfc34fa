package imports

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// document writes the plan as YAML. Texts of the file are quoted, and in comments what cannot
// be printed is replaced.
func (r *reader) document() []byte {
	nodes := []document.Node{
		{Above: r.head(), Key: "version", Text: "1"},
		{Key: "name", Text: document.Quoted(r.file.Name)},
		{Key: "description", Text: document.Quoted("the settings of " + r.file.Path)},
		{Key: "extends", Text: policies.StandardName},
	}
	if widen := r.widen(r.file.Path); len(widen) > 0 {
		nodes = append(nodes, document.Node{Key: "widen", Nodes: widen})
	}
	if r.system != "" {
		return document.YAML(append(nodes, document.Node{Above: r.filter, Key: "seccomp", Text: document.Quoted(r.system)}))
	}
	nodes = append(nodes, document.Node{Key: "files", Nodes: r.files()})
	if len(r.env) > 0 {
		nodes = append(nodes, document.Node{Key: "environment", Note: r.ofEnv, Nodes: []document.Node{{Key: "set", Nodes: r.setVariables()}}})
	}
	return document.YAML(append(nodes, document.Node{Key: "network", Nodes: r.network()}))
}

// head says what the document was made from, and what is not in it.
func (r *reader) head() []string {
	lines := []string{fmt.Sprintf("made by clove policy import from %s (%s)", r.file.Path, r.file.System)}
	for _, setting := range r.left {
		lines = append(lines, "LEFT OUT by --skip: "+setting)
	}
	for _, n := range r.notes {
		lines = append(lines, n.setting+": "+n.text)
	}
	if len(r.own) > 0 {
		lines = append(lines, "of the program itself, no sandbox holds them: "+strings.Join(r.own, ", "))
	}
	if r.system != "" {
		return lines
	}
	if r.isWritable(agent.WorkspaceDir) {
		lines = append(lines, fmt.Sprintf("files of the workspace that %s protects by itself, such as .git/hooks, change in the copy; clove apply asks before it brings them back", r.file.System))
	}
	return append(lines, "of the host, only the base system, the workspace, volumes, and an interpreter that a run needs appear inside")
}

// widen gives the reasons for what the level standard does not allow; path names the file in them.
func (p *plan) widen(path string) (nodes []document.Node) {
	reasons := map[string][]string{}
	if p.system != "" {
		reasons["seccomp"] = append(reasons["seccomp"], "the filter is that of the file")
	}
	for _, v := range p.volumes {
		reasons["files.volumes"] = append(reasons["files.volumes"], keyOf(v.setting))
	}
	if p.public != "" && p.mode == agent.NetworkPublic {
		reasons["network"] = append(reasons["network"], keyOf(p.public))
	}
	for _, t := range p.allow {
		reasons["network"] = append(reasons["network"], keyOf(t.setting))
	}
	for _, port := range p.ports {
		reasons["network"] = append(reasons["network"], keyOf(port.setting))
	}
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		from := slices.Compact(slices.Sorted(slices.Values(reasons[key])))
		nodes = append(nodes, document.Node{Key: key, Text: document.Quoted(fmt.Sprintf("%s of %s", strings.Join(from, ", "), path))})
	}
	return nodes
}

// keyOf is a setting without the items of its list.
func keyOf(setting string) string {
	key, _, _ := strings.Cut(setting, "=")
	return key
}

func (p *plan) files() []document.Node {
	var writable, volumes []document.Node
	for _, place := range agent.WritablePlaces {
		if why := p.writable[place]; why != "" {
			writable = append(writable, document.Node{Text: place, Note: why})
		}
	}
	for _, v := range p.volumes {
		node := document.Node{Text: document.Quoted(v.path + ":" + v.inside + ":ro"), Note: v.setting}
		if !v.readOnly {
			node.Text, node.Note = document.Quoted(v.path+":"+v.inside), v.setting+": the host's own directory; what is written there stays, .git and all other files in it"
		}
		volumes = append(volumes, node)
	}
	nodes := []document.Node{
		{Key: "root", Text: settings.RootReadOnly, Note: "nothing is written but what is named here"},
		{Key: "writable", Nodes: writable},
	}
	if len(volumes) > 0 {
		nodes = append(nodes, document.Node{Key: "volumes", Nodes: volumes})
	}
	return nodes
}

func (p *plan) setVariables() (nodes []document.Node) {
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		nodes = append(nodes, document.Node{Key: document.Quoted(name), Text: document.Quoted(p.env[name])})
	}
	return nodes
}

func (p *plan) network() []document.Node {
	if p.mode == agent.NetworkNone {
		return []document.Node{{Key: "mode", Text: p.mode, Note: "nothing that is carried allows a name"}}
	}
	var ports []document.Node
	for _, port := range p.ports {
		ports = append(ports, document.Node{Text: strconv.Itoa(int(port.number)), Note: port.setting})
	}
	nodes := []document.Node{{Key: "mode", Text: p.mode}}
	for _, list := range []document.Node{{Key: "allow", Nodes: targets(p.allow)}, {Key: "deny", Nodes: targets(p.deny)}, {Key: "host_ports", Nodes: ports}} {
		if len(list.Nodes) > 0 {
			nodes = append(nodes, list)
		}
	}
	return nodes
}

func targets(list []target) (nodes []document.Node) {
	seen := map[string]bool{}
	for _, t := range list {
		if seen[t.text] {
			continue
		}
		seen[t.text] = true
		note := t.setting
		if t.note != "" {
			note += ": " + t.note
		}
		nodes = append(nodes, document.Node{Text: document.Quoted(t.text), Note: note})
	}
	return nodes
}
