//go:build unix

package install

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"anamnesis/orchestrator/sessions"
)

const blank = " \t\r\n"

// item is a member of an object or an element of a list.
type item struct {
	start, end    int // of its text, from the name on
	before, after int // length of whitespace and comments around it, up to the commas
	space         int // of before, the whitespace at the end
}

// inside lists the items of an object or list. rest is where the text behind the last item, or behind its comma, begins.
func inside(v *hujson.Value) (list []item, rest int, comma bool) {
	add := func(first, last *hujson.Value) {
		lead := first.BeforeExtra
		list = append(list, item{first.StartOffset, last.EndOffset, len(lead), len(last.AfterExtra),
			len(lead) - len(bytes.TrimRight(lead, blank))})
		comma = last.AfterExtra != nil
	}
	var after hujson.Extra
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			add(&c.Members[i].Name, &c.Members[i].Value)
		}
		after = c.AfterExtra
	case *hujson.Array:
		for i := range c.Elements {
			add(&c.Elements[i], &c.Elements[i])
		}
		after = c.AfterExtra
	}
	return list, v.EndOffset - 1 - len(after), comma
}

// member returns the index of an object's member, -1 if there is none.
func member(v *hujson.Value, name string) int {
	if v == nil {
		return -1
	}
	object, _ := v.Value.(*hujson.Object)
	if object == nil {
		return -1
	}
	return slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool { return nameOf(m.Name) == name })
}

func nameOf(v hujson.Value) string {
	l, _ := v.Value.(hujson.Literal)
	return l.String()
}

// at returns a value of nested objects, nil if there is none.
func at(v *hujson.Value, names ...string) *hujson.Value {
	for _, name := range names {
		i := member(v, name)
		if i < 0 {
			return nil
		}
		v = &v.Value.(*hujson.Object).Members[i].Value
	}
	return v
}

// insert adds a value to the end of the object or list at a path, in an object under a name. No
// byte of the rest is changed, so that removeItem takes back what it did.
func insert(data []byte, path []string, name string, value any) ([]byte, error) {
	root, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	v := at(&root, path...)
	if v == nil || v.Value.Kind() != '{' && name != "" || v.Value.Kind() != '[' && name == "" {
		return nil, fmt.Errorf("%s is not of the form that the agent documents", cmp.Or(strings.Join(path, "."), "it"))
	}
	margin := "\n" + strings.Repeat("  ", len(path))
	text := jsonText(value, margin[1:]+"  ")
	if name != "" {
		text = jsonText(name, "") + ": " + text
	}
	list, rest, comma := inside(v)
	end := v.EndOffset - 1
	after := rest + len(bytes.TrimRight(data[rest:end], blank)) // a comment stays before what is added
	separator, close := margin+"  ", ""
	switch {
	case len(list) == 0 && after == rest:
		close, end = margin, rest
		data = slices.Concat(data[:rest], data[v.EndOffset-1:])
	case after == rest && !bytes.Contains(data[v.StartOffset:end], []byte("\n")):
		separator = " "
	}
	if comma {
		close = "," + close
	}
	added := separator + text + close
	if bytes.Contains(data, []byte("\r\n")) {
		added = strings.ReplaceAll(added, "\n", "\r\n")
	}
	before := data[:after]
	if n := len(list); n > 0 && !comma {
		before = slices.Concat(data[:list[n-1].end], []byte(","), data[list[n-1].end:after])
	}
	return slices.Concat(before, []byte(added), data[after:]), nil
}

// alone reports whether an object or list holds one item and no comment.
func alone(data []byte, v *hujson.Value) bool {
	list, _, _ := inside(v)
	return len(list) == 1 && list[0].before == list[0].space &&
		len(bytes.Trim(data[list[0].end:v.EndOffset-1], blank+",")) == 0
}

// removeItem takes an item out of an object or list, with one comma. was is the same object or
// list before the installation, nil if it is not known: If it was empty, it is so again.
func removeItem(data []byte, v *hujson.Value, i int, was []byte) []byte {
	list, _, comma := inside(v)
	it, last := list[i], i == len(list)-1
	if alone(data, v) && len(was) > 0 {
		return slices.Concat(data[:v.StartOffset], was, data[v.EndOffset:])
	}
	start, comments := it.start-it.space, it.before > it.space
	drop := -1 // the comma
	switch {
	case !last || comma:
		drop = it.end + it.after
	case i > 0:
		drop = list[i-1].end + list[i-1].after
	}
	after := data[it.end:]
	if drop >= it.end {
		after = slices.Concat(data[it.end:drop], data[drop+1:])
	}
	if comments && !bytes.HasSuffix(data[:start], []byte("*/")) &&
		!bytes.HasPrefix(bytes.TrimLeft(after, " \t\r"), []byte("\n")) {
		start += bytes.IndexByte(data[start:], '\n') + 1 // the end of a line comment
	}
	before := data[:start]
	if drop >= 0 && drop < start {
		before = slices.Concat(data[:drop], data[drop+1:start])
	}
	return slices.Concat(before, after)
}

// step is an item on the way to an entry. made is the way to its object or list in the file, nil
// for one that goes with its last item.
type step struct {
	in   *hujson.Value
	i    int
	path []string
}

// findOurs returns the way to the first entry of ours, nil if there is none. The rules that older has are
// the user's.
func (p *part) findOurs(root, older *hujson.Value) []step {
	if p.servers != "" {
		list := at(root, p.servers)
		if i := member(list, "anamnesis"); i >= 0 {
			return []step{{root, member(root, p.servers), []string{}}, {list, i, []string{p.servers}}}
		}
		return nil
	}
	if i, list := findRule(root, older); list != nil {
		return []step{{root, member(root, "permissions"), []string{}},
			{at(root, "permissions"), member(at(root, "permissions"), "allow"), []string{"permissions"}},
			{list, i, []string{"permissions", "allow"}}}
	}
	hooks := at(root, "hooks")
	if hooks == nil || hooks.Value.Kind() != '{' {
		return nil
	}
	object := hooks.Value.(*hujson.Object)
	for e := range object.Members {
		list, _ := object.Members[e].Value.Value.(*hujson.Array)
		for n := 0; list != nil && n < len(list.Elements); n++ {
			own := at(&list.Elements[n], "hooks")
			if own == nil || own.Value.Kind() != '[' {
				continue
			}
			for i := range own.Value.(*hujson.Array).Elements {
				command := at(&own.Value.(*hujson.Array).Elements[i], "command")
				if command != nil && wrapperOf(nameOf(*command)) != "" {
					event := nameOf(object.Members[e].Name)
					return []step{{root, member(root, "hooks"), []string{}}, {hooks, e, []string{"hooks"}},
						{&object.Members[e].Value, n, []string{"hooks", event}}, {own, i, nil}}
				}
			}
		}
	}
	return nil
}

// findRule returns the list of allowed tools and the first rule in it that older does not have, nil if there is none.
func findRule(root, older *hujson.Value) (int, *hujson.Value) {
	elements := func(v *hujson.Value) []hujson.ArrayElement {
		if v == nil || v.Value.Kind() != '[' {
			return nil
		}
		return v.Value.(*hujson.Array).Elements
	}
	list, had := at(root, "permissions", "allow"), elements(at(older, "permissions", "allow"))
	for i, e := range elements(list) {
		name := nameOf(e)
		if isRule(name) && !slices.ContainsFunc(had, func(e hujson.ArrayElement) bool { return nameOf(e) == name }) {
			return i, list
		}
	}
	return 0, nil
}

// removeJSON takes our entries out of a configuration, and objects and lists that are then empty.
// Those that was has, the text before the installation, stay.
func (p *part) removeJSON(data, was []byte) ([]byte, error) {
	older, err := hujson.Parse(was)
	known := err == nil
	for {
		root, err := hujson.Parse(data)
		if err != nil {
			return nil, err
		}
		way := p.findOurs(&root, &older)
		if way == nil {
			return data, nil
		}
		i := len(way) - 1
		var before *hujson.Value
		for ; i > 0; i-- {
			if !alone(data, way[i].in) {
				break
			}
			if before = nil; known && way[i].path != nil {
				before = at(&older, way[i].path...)
			}
			if before != nil {
				break
			}
		}
		if i == 0 && known {
			before = &older
		}
		empty := []byte(nil)
		if before != nil {
			if list, _, _ := inside(before); len(list) == 0 {
				empty = was[before.StartOffset:before.EndOffset]
			}
		} else if i == 0 {
			empty = []byte("{}")
		}
		data = removeItem(data, way[i].in, way[i].i, empty)
	}
}

// addJSON adds our entries to a configuration without them. older is an earlier entry of the MCP server.
func (p *Places) addJSON(agent sessions.Agent, part part, data []byte, older map[string]any) ([]byte, error) {
	// add makes the objects and lists on the way that are not there.
	var add func(path []string, name string, value any) error
	add = func(path []string, name string, value any) error {
		root, err := hujson.Parse(data)
		if err == nil && len(path) > 0 && at(&root, path...) == nil {
			last := len(path) - 1
			if name == "" {
				value = []any{value}
			} else {
				value = map[string]any{name: value}
			}
			return add(path[:last], path[last], value)
		}
		if err == nil {
			data, err = insert(data, path, name, value)
		}
		return err
	}
	if part.servers != "" {
		err := add([]string{part.servers}, "anamnesis", p.serverEntry(agent, older))
		return data, err
	}
	values, _ := parse(part.path, data)
	for _, tool := range readOnlyTools {
		if !part.allow || slices.Contains(rulesIn(values), any(rulePrefix+tool)) {
			continue
		}
		if err := add([]string{"permissions", "allow"}, "", rulePrefix+tool); err != nil {
			return nil, err
		}
	}
	for _, e := range events[agent] {
		if err := add([]string{"hooks", e}, "", p.hookEntry(agent)); err != nil {
			return nil, err
		}
	}
	return data, nil
}
