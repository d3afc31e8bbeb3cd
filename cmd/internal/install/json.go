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

// extras are the whitespace and the comments in an object or list: before each item, after each item up to its comma,
// and at the end. hujson takes a comma for written after the last item if that has an extra.
func extras(v *hujson.Value) (before, after []*hujson.Extra, end *hujson.Extra) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			before = append(before, &c.Members[i].Name.BeforeExtra)
			after = append(after, &c.Members[i].Value.AfterExtra)
		}
		end = &c.AfterExtra
	case *hujson.Array:
		for i := range c.Elements {
			before, after = append(before, &c.Elements[i].BeforeExtra), append(after, &c.Elements[i].AfterExtra)
		}
		end = &c.AfterExtra
	}
	return before, after, end
}

func isBlank(text hujson.Extra) bool { return len(bytes.Trim(text, blank)) == 0 }

func textOf(v hujson.Value) string {
	l, _ := v.Value.(hujson.Literal)
	return l.String()
}

// insert adds a value to the end of an object, under a name, or of a list. margin is that of the closing bracket. A
// comment there stays before what is added.
func insert(v *hujson.Value, margin, name string, value any) error {
	added, err := hujson.Parse([]byte(jsonText(value, margin+"  ")))
	if err != nil {
		return err
	}
	_, after, end := extras(v)
	comma := len(after) > 0 && *after[len(after)-1] != nil
	lead := slices.Concat(bytes.TrimRight(*end, blank), []byte("\n"+margin+"  "))
	*end = []byte("\n" + margin)
	if comma {
		added.AfterExtra = hujson.Extra{}
	}
	if list, ok := v.Value.(*hujson.Array); ok {
		added.BeforeExtra = lead
		list.Elements = append(list.Elements, added)
		return nil
	}
	added.BeforeExtra = hujson.Extra(" ")
	object := v.Value.(*hujson.Object)
	object.Members = append(object.Members,
		hujson.ObjectMember{Name: hujson.Value{BeforeExtra: lead, Value: hujson.String(name)}, Value: added})
	return nil
}

// removeItem takes an item out of an object or list. Comments beside it stay.
func removeItem(v *hujson.Value, i int) {
	before, after, end := extras(v)
	last := i == len(before)-1
	next := end
	if !last {
		next = before[i+1]
	}
	if beside := slices.Concat(*before[i], *after[i]); !isBlank(beside) {
		*next = slices.Concat(bytes.TrimRight(beside, " \t"), bytes.TrimPrefix(*next, []byte("\n")))
	} else if last && isBlank(*end) && (i == 0 || !bytes.Contains(*before[0], []byte("\n"))) { // it was on one line
		*end = nil
	}
	if last && i > 0 { // the item before it then has a comma if it had one
		if prev := after[i-1]; *after[i] != nil {
			*prev = append(hujson.Extra{}, *prev...)
		} else {
			*end, *prev = slices.Concat(*prev, *end), nil
		}
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		c.Members = slices.Delete(c.Members, i, i+1)
	case *hujson.Array:
		c.Elements = slices.Delete(c.Elements, i, i+1)
	}
}

// prune removes what is ours from a value, and what is then empty. It reports whether the value itself has to go.
func prune(v *hujson.Value, ours func(*hujson.Value) bool) bool {
	if ours(v) {
		return true
	}
	removed, idle := false, false
	before, _, end := extras(v)
	for i := len(before) - 1; i >= 0; i-- {
		name := ""
		var item *hujson.Value
		switch c := v.Value.(type) {
		case *hujson.Object:
			name, item = textOf(c.Members[i].Name), &c.Members[i].Value
		case *hujson.Array:
			item = &c.Elements[i]
		}
		if prune(item, ours) {
			removeItem(v, i)
			removed, idle = true, idle || name == "hooks" // an entry without its hooks goes, with its matcher
		}
	}
	before, _, _ = extras(v)
	return idle || removed && len(before) == 0 && isBlank(*end)
}

// removeJSON takes our entries out of a configuration, and objects and lists that are then empty.
func (p *part) removeJSON(data []byte) ([]byte, error) {
	root, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	entry, allow := root.Find("/"+p.servers+"/anamnesis"), root.Find("/permissions/allow")
	ours := map[string]func(*hujson.Value) bool{p.servers: func(v *hujson.Value) bool { return v == entry }}
	if p.servers == "" {
		ours = map[string]func(*hujson.Value) bool{
			"hooks": func(v *hujson.Value) bool {
				command := v.Find("/command")
				return command != nil && wrapperOf(textOf(*command)) != ""
			},
			"permissions": func(v *hujson.Value) bool {
				return v == allow && prune(v, func(v *hujson.Value) bool { return isRule(textOf(*v)) })
			},
		}
	}
	object, _ := root.Value.(*hujson.Object)
	for i := len(object.Members) - 1; i >= 0; i-- {
		if is := ours[textOf(object.Members[i].Name)]; is != nil && prune(&object.Members[i].Value, is) {
			removeItem(&root, i)
		}
	}
	return root.Pack(), nil
}

// addJSON adds our entries to a configuration without them. older is an earlier entry of the MCP server.
func (p *Places) addJSON(agent sessions.Agent, part part, data []byte, older map[string]any) ([]byte, error) {
	root, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	// add makes the objects and lists on the way that are not there.
	add := func(path []string, name string, value any) error {
		v, depth := &root, 0
		for ; depth < len(path) && v.Find("/"+path[depth]) != nil; depth++ {
			v = v.Find("/" + path[depth])
		}
		for _, missing := range slices.Backward(path[depth:]) {
			if name == "" {
				value = []any{value}
			} else {
				value = map[string]any{name: value}
			}
			name = missing
		}
		if v.Value.Kind() != '{' && name != "" || v.Value.Kind() != '[' && name == "" {
			at := cmp.Or(strings.Join(path[:depth], "."), "it")
			return fmt.Errorf("%s is not of the form that the agent documents", at)
		}
		return insert(v, strings.Repeat("  ", depth), name, value)
	}
	if part.servers != "" {
		err = add([]string{part.servers}, "anamnesis", p.serverEntry(agent, older))
	} else {
		for _, rule := range part.rules {
			err = cmp.Or(err, add([]string{"permissions", "allow"}, "", rule))
		}
		for _, e := range events[agent] {
			err = cmp.Or(err, add([]string{"hooks", e}, "", p.hookEntry(agent)))
		}
	}
	text := root.Pack()
	if bytes.Contains(data, []byte("\r\n")) {
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	return text, err
}
