package worldstate

import (
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
)

// edit is a name that is not as it was: an item, another thing, or gone.
type edit struct {
	item  item // its kind is 0 where there is none
	sight fsys.Sight
	other other
	gone  bool
}

func (e *edit) name() string {
	if e.item.kind != 0 {
		return e.item.name
	}
	return e.other.name
}

func (v *visit) put(e edit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.edits = append(v.edits, e)
}

// gone records that a name is not there any more.
func (v *visit) gone(name string) { v.put(edit{other: other{name: name}, gone: true}) }

// without records a name that is no part of the snapshot, if it was not so.
func (v *visit) without(was *other, o other) {
	if was == nil || *was != o {
		v.put(edit{other: o})
	}
}

// end makes the directory's node. One that is as it was is prev itself.
func (v *visit) end() *node {
	n := v.prev
	if v.fault != "" {
		return seal(nil, &sighting{dir: v.seen.dir, fault: v.fault})
	}
	if n != nil && len(v.edits) == 0 {
		old := n.seen
		if old.dir == v.seen.dir && old.ruleSight == v.seen.ruleSight && old.frozen == v.seen.frozen && old.foreign == v.seen.foreign {
			return n
		}
		c := *n
		v.seen.items, v.seen.others = old.items, old.others
		c.seen = v.kept()
		if old.frozen == v.seen.frozen && old.rulesNote == v.seen.rulesNote && old.foreign == v.seen.foreign {
			return &c
		}
		made := seal(n.items, v.kept())
		made.held = n.held
		return made
	}
	items := v.apply()
	made := seal(items, v.kept())
	if n != nil && n.tree == made.tree {
		made.held = n.held
	}
	return made
}

// kept is what the visit saw, apart from the visit: a node that pointed into it
// would keep it, what was known before, and so every scan there was.
func (v *visit) kept() *sighting {
	seen := v.seen
	return &seen
}

// apply merges the edits into what was known.
func (v *visit) apply() []item {
	slices.SortFunc(v.edits, func(a, b edit) int { return strings.Compare(a.name(), b.name()) })
	var was []item
	var sights []fsys.Sight
	var others []other
	if v.prev != nil {
		was, sights, others = v.prev.items, v.prev.seen.items, v.prev.seen.others
	}
	items := make([]item, 0, len(was)+len(v.edits))
	v.seen.items = make([]fsys.Sight, 0, len(was)+len(v.edits))
	i, j := 0, 0
	keepUpTo := func(name string, all bool) {
		for ; i < len(was) && (all || was[i].name < name); i++ {
			items, v.seen.items = append(items, was[i]), append(v.seen.items, sights[i])
		}
		for ; j < len(others) && (all || others[j].name < name); j++ {
			v.seen.others = append(v.seen.others, others[j])
		}
	}
	for k := range v.edits {
		e := &v.edits[k]
		name := e.name()
		keepUpTo(name, false)
		if i < len(was) && was[i].name == name {
			i++
		}
		if j < len(others) && others[j].name == name {
			j++
		}
		switch {
		case e.item.kind != 0:
			items, v.seen.items = append(items, e.item), append(v.seen.items, e.sight)
		case !e.gone:
			v.seen.others = append(v.seen.others, e.other)
		}
	}
	keepUpTo("", true)
	return items
}
