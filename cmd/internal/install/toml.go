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

// removeTOML takes our entries out of a configuration.
func (p *part) removeTOML(data []byte) ([]byte, error) {
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
		if server && hasPrefix(key, p.entry()) || element >= 0 && hasPrefix(table, []string{"hooks"}) && ours(element) {
			cuts = append(cuts, lines(data, own))
		}
	}
	if err := parser.Error(); err != nil {
		return nil, err
	}
	var rest []byte
	at := 0
	// The spans were extended to whole lines, so they may overlap.
	for _, c := range cuts {
		rest = append(rest, data[at:max(at, c.start)]...)
		at = max(at, c.end)
	}
	return append(rest, data[at:]...), nil
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
	text.WriteString("[" + strings.Join(part.entry(), ".") + "]\n")
	if err := toml.NewEncoder(text).SetTablesInline(true).Encode(p.serverEntry(agent, older)); err != nil {
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
