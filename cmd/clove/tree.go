package main

import (
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/cmd/clove/verbs"
	"clove.run/clove/kernel/budget"
)

// branch is a place in a tree of runs.
type branch struct {
	at    int // in the list that the tree was made of
	depth int // 0: of a run whose parent is not in the list
}

// treeOf puts each run of a list behind its parent, once. Runs of one parent stay in the order of the list.
// If parents form a circle, which cloved does not make, one of the circle is shown without its parent.
func treeOf(n int, id, parent func(int) agent.ID) []branch {
	listed := map[agent.ID]bool{}
	for i := range n {
		listed[id(i)] = true
	}
	below := map[agent.ID][]int{}
	for i := range n {
		above := parent(i)
		if !listed[above] || above == id(i) {
			above = ""
		}
		below[above] = append(below[above], i)
	}
	tree, shown := make([]branch, 0, n), map[agent.ID]bool{"": true}
	var grow func(at, depth int)
	grow = func(at, depth int) {
		if shown[id(at)] {
			return
		}
		shown[id(at)] = true
		tree = append(tree, branch{at, depth})
		for _, i := range below[id(at)] {
			grow(i, depth+1)
		}
	}
	for _, i := range below[""] {
		grow(i, 0)
	}
	for i := range n {
		grow(i, 0)
	}
	return tree
}

// indented is a name in a tree, two columns for each level.
func (b branch) indented(name string) string { return strings.Repeat("  ", b.depth) + name }

// runTree puts runs behind their parents, and returns how deep each is.
func runTree(listed []api.RunResult) (runs []api.RunResult, places []branch) {
	places = treeOf(len(listed), func(i int) agent.ID { return listed[i].Run.Spec.ID }, func(i int) agent.ID { return listed[i].Run.Parent })
	for _, b := range places {
		runs = append(runs, listed[b.at])
	}
	return runs, places
}

// childTree are the lines about the runs below one, which agent.tree lists.
func childTree(children []api.Child) [][]string {
	rows := [][]string{{"RUN", "NAME", "MANIFEST", "STATE", "STATUS"}}
	for _, b := range treeOf(len(children), func(i int) agent.ID { return children[i].ID }, func(i int) agent.ID { return children[i].Parent }) {
		k := children[b.at]
		rows = append(rows, []string{b.indented(k.Run), k.Name, k.Manifest, string(k.State), k.Status})
	}
	return rows
}

// budgetTree are the lines of what a run spends from. Where other runs are above it, its owner's account
// is the first, and each run's is below the one that started it.
func budgetTree(run agent.Run, lines []api.Budget) [][]string {
	if len(run.Above) == 0 {
		rows, _ := verbs.Rows(lines, forms(), budgetColumns)
		return rows
	}
	chain := run.Under() // the run first
	level, levels := 0, map[string]int{}
	for _, line := range lines {
		key := budget.Key(line.Account)
		if id, is := key.Run(); is {
			// One that is not above it, as its name has come to mean another run, is shown as its own.
			level = max(0, slices.IndexFunc(chain, func(a agent.Ancestor) bool { return a.ID == id }))
		} else if key == budget.OwnerKey(run.Owner.UID) {
			level = len(chain)
		}
		levels[line.Account] = level
	}
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b api.Budget) int { return levels[b.Account] - levels[a.Account] })
	rows, _ := verbs.Rows(lines, forms(), budgetColumns)
	for i, line := range lines {
		level, name := levels[line.Account], ""
		if _, is := budget.Key(line.Account).Run(); is {
			name = " (" + chain[level].Name + ")"
		}
		rows[i+1][0] = branch{depth: len(chain) - level}.indented(line.Account) + name
	}
	return rows
}
