//go:build unix

package install

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"anamnesis/orchestrator/sessions"
)

// Comments around what an installation wrote.
const (
	tableBegin = "# anamnesis:begin"
	tableEnd   = "# anamnesis:end"
)

// span is a part of a text.
type span struct{ start, end int }

// lines extends a part of a text to whole lines.
func lines(data []byte, s span) span {
	s.start = bytes.LastIndexByte(data[:s.start], '\n') + 1
	if i := bytes.IndexByte(data[s.end:], '\n'); i >= 0 {
		s.end += i + 1
	} else {
		s.end = len(data)
	}
	return s
}

func keyOf(n *unstable.Node) (key []string) {
	for it := n.Key(); it.Next(); {
		key = append(key, string(it.Node().Data))
	}
	return key
}

func hasPrefix(key, prefix []string) bool {
	return len(key) >= len(prefix) && slices.Equal(key[:len(prefix)], prefix)
}

func spanOf(n *unstable.Node) span {
	start := int(n.Raw.Offset)
	return span{start, start + int(n.Raw.Length)}
}

// removeTOML takes our entries out of a configuration. was is its text before the installation.
func (p *part) removeTOML(data, was []byte) ([]byte, error) {
	root, err := parse(p.path, data)
	if err != nil {
		return nil, err
	}
	_, server := p.server(root)
	hooks := items(root["hooks"])
	ours := func(i int) bool { // whether a table of hooks is
		m, _ := hooks[i].(map[string]any)
		command, _ := m["command"].(string)
		return wrapperOf(command) != ""
	}
	var cuts []span
	// inline finds the entry in inline tables.
	var inline func(n *unstable.Node, prefix []string)
	inline = func(n *unstable.Node, prefix []string) {
		var all []*unstable.Node
		for it := n.Children(); it.Next(); {
			all = append(all, it.Node())
		}
		kept := -1
		for i, kv := range all {
			key, own := slices.Concat(prefix, keyOf(kv)), spanOf(kv)
			switch {
			case !hasPrefix(key, p.entry()):
				kept = i
				if kv.Value().Kind == unstable.InlineTable && hasPrefix(p.entry(), key) {
					inline(kv.Value(), key)
				}
				continue
			case kept >= 0:
				own.start = spanOf(all[i-1]).end
			case i+1 < len(all):
				own.end = spanOf(all[i+1]).start
			}
			cuts = append(cuts, own)
		}
	}
	var table []string
	element, parser := -1, unstable.Parser{KeepComments: true}
	parser.Reset(data)
	for parser.NextExpression() {
		n := parser.Expression()
		var own span
		switch n.Kind {
		case unstable.Comment:
			if text := strings.TrimSpace(string(n.Data)); text == tableBegin || text == tableEnd {
				cuts = append(cuts, lines(data, spanOf(n)))
			}
			continue
		case unstable.KeyValue:
			own = spanOf(n)
		default:
			table = keyOf(n)
			if own = spanOf(n.Child()); n.Kind == unstable.ArrayTable && slices.Equal(table, []string{"hooks"}) {
				element++
			}
		}
		key := table
		if n.Kind == unstable.KeyValue {
			key = slices.Concat(table, keyOf(n))
		}
		switch {
		case server && hasPrefix(key, p.entry()), element >= 0 && hasPrefix(table, []string{"hooks"}) && ours(element):
			cuts = append(cuts, lines(data, own))
		case server && n.Kind == unstable.KeyValue && n.Value().Kind == unstable.InlineTable &&
			hasPrefix(p.entry(), key):
			inline(n.Value(), key)
		}
	}
	if err := parser.Error(); err != nil {
		return nil, err
	}
	var rest []byte
	at := 0
	for _, c := range cuts {
		rest = append(rest, data[at:max(at, c.start)]...)
		at = max(at, c.end)
	}
	rest = append(rest, data[at:]...)
	if at == len(data) && len(was) > 0 && !bytes.HasSuffix(was, []byte("\n")) {
		rest = bytes.TrimSuffix(bytes.TrimSuffix(rest, []byte("\n")), []byte("\r")) // an installation added it
	}
	return rest, nil
}

// entry is the name of the MCP server's table.
func (p *part) entry() []string { return []string{p.servers, "anamnesis"} }

// addTOML adds our entries to a configuration without them. older is an earlier entry of the MCP server.
func (p *Places) addTOML(agent sessions.Agent, part part, data []byte, older map[string]any) ([]byte, error) {
	text := new(strings.Builder)
	if part.servers == "" {
		command := jsonText(p.Command(agent), "")
		for _, e := range events[agent] {
			fmt.Fprintf(text, "[[hooks]]\nevent = %s\ncommand = %s\ntimeout = %d\n",
				jsonText(e, ""), command, hookSeconds)
		}
		return appendTables(data, text.String()), nil
	}
	entry := p.serverEntry(agent, older)
	parser := unstable.Parser{}
	parser.Reset(data)
	for parser.NextExpression() {
		n := parser.Expression()
		if n.Kind != unstable.KeyValue {
			break // what follows is in a table
		}
		if !slices.Equal(keyOf(n), []string{part.servers}) || n.Value().Kind != unstable.InlineTable {
			continue
		}
		if err := toml.NewEncoder(text).SetTablesInline(true).Encode(map[string]any{"anamnesis": entry}); err != nil {
			return nil, err
		}
		added, end := strings.TrimSuffix(text.String(), "\n"), spanOf(n).end-1
		end = len(bytes.TrimRight(data[:end], " \t"))
		if n.Value().Child() != nil {
			added = ", " + added
		}
		return slices.Concat(data[:end], []byte(added), data[end:]), nil
	}
	text.WriteString("[" + strings.Join(part.entry(), ".") + "]\n")
	if err := toml.NewEncoder(text).SetTablesInline(true).Encode(entry); err != nil {
		return nil, err
	}
	return appendTables(data, text.String()), nil
}

func appendTables(data []byte, tables string) []byte {
	tables = tableBegin + "\n" + tables + tableEnd + "\n"
	if len(data) > 0 && data[len(data)-1] != '\n' {
		tables = "\n" + tables
	}
	if bytes.Contains(data, []byte("\r\n")) {
		tables = strings.ReplaceAll(tables, "\n", "\r\n")
	}
	return append(bytes.Clone(data), tables...)
}
