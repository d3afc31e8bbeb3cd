package scan

import (
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/tree"
)

// edit is a name that differs from before: a new item, a new Other, or removed.
type edit struct {
	item  tree.Item // Kind is 0 if there is none
	sight fsys.Sight
	other tree.Other
	gone  bool
}

func (e *edit) name() string {
	if e.item.Kind != 0 {
		return e.item.Name
	}
	return e.other.Name
}

func (v *visit) put(e edit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.edits = append(v.edits, e)
}

// putRemoved records that a name was removed.
func (v *visit) putRemoved(name string) { v.put(edit{other: tree.Other{Name: name}, gone: true}) }

// leaveOut records a name that is not in the snapshot, if that has changed.
func (v *visit) leaveOut(was *tree.Other, o tree.Other) {
	if was == nil || *was != o {
		v.put(edit{other: o})
	}
}

// seal returns the directory's node, which is prev itself if nothing has changed.
func (v *visit) seal() *tree.Node {
	n := v.prev
	if v.fault != "" {
		return tree.Seal(nil, &tree.Sighting{Dir: v.seen.Dir, Fault: v.fault})
	}
	if n != nil && len(v.edits) == 0 {
		old := n.Seen
		if old.Dir == v.seen.Dir && old.RuleSight == v.seen.RuleSight && old.Frozen == v.seen.Frozen {
			return n
		}
	}
	items := v.apply()
	seen := v.seen // a node that pointed into the visit would keep every earlier scan in memory
	made := tree.Seal(items, &seen)
	if n != nil && n.Tree == made.Tree { // the trees beneath are the same, and so is whether the store has them
		made.Held = n.Held
	}
	return made
}

// apply merges the edits into the previous items.
func (v *visit) apply() []tree.Item {
	slices.SortFunc(v.edits, func(a, b edit) int { return strings.Compare(a.name(), b.name()) })
	var was []tree.Item
	var sights []fsys.Sight
	var others []tree.Other
	if v.prev != nil {
		was, sights, others = v.prev.Items, v.prev.Seen.Items, v.prev.Seen.Others
	}
	// All lists are sorted by name, so one pass merges them. A name may move between items and others.
	items := make([]tree.Item, 0, len(was)+len(v.edits))
	v.seen.Items = make([]fsys.Sight, 0, len(was)+len(v.edits))
	i, j := 0, 0
	keepUpTo := func(name string, all bool) {
		for ; i < len(was) && (all || was[i].Name < name); i++ {
			items, v.seen.Items = append(items, was[i]), append(v.seen.Items, sights[i])
		}
		for ; j < len(others) && (all || others[j].Name < name); j++ {
			v.seen.Others = append(v.seen.Others, others[j])
		}
	}
	for k := range v.edits {
		e := &v.edits[k]
		name := e.name()
		keepUpTo(name, false)
		if i < len(was) && was[i].Name == name {
			i++
		}
		if j < len(others) && others[j].Name == name {
			j++
		}
		switch {
		case e.item.Kind != 0:
			items, v.seen.Items = append(items, e.item), append(v.seen.Items, e.sight)
		case !e.gone:
			v.seen.Others = append(v.seen.Others, e.other)
		}
	}
	keepUpTo("", true)
	return items
}
