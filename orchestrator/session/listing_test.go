package session

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool/mcp"
)

// TestPickServers: the named servers are picked, or those that can be started.
func TestPickServers(t *testing.T) {
	good, off, bad := mcp.Server{Name: "good"}, mcp.Server{Name: "off", Disabled: true},
		mcp.Server{Name: "bad", Fault: fs.ErrInvalid}
	for _, tt := range []struct {
		all   []mcp.Server
		names []string
		want  string
		err   string
	}{
		{[]mcp.Server{bad, off, good}, nil, "[good]", ""},
		{[]mcp.Server{bad, off, good}, []string{"good", "off"}, "[good off]", ""},
		{[]mcp.Server{bad, off, good}, []string{"bad"}, "", "invalid"},
		{[]mcp.Server{good}, []string{"none"}, "", "none"},
		{[]mcp.Server{bad, off}, nil, "", "invalid"},
		{[]mcp.Server{off}, nil, "", "no MCP server is configured"},
	} {
		got, err := PickServers(tt.all, tt.names)
		var names []string
		for _, s := range got {
			names = append(names, s.Name)
		}
		if err == nil && fmt.Sprint(names) != tt.want || (err == nil) != (tt.err == "") ||
			err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v of %d: %v, %v", tt.names, len(tt.all), names, err)
		}
	}
	if got, err := Pairs("--env", []string{"A=1=2", " B = x "}, "="); err != nil ||
		fmt.Sprint(got) != "map[A:1=2 B:x]" {
		t.Errorf("pairs %v, %v", got, err)
	}
	for _, kv := range []string{"A", "=1", " =1"} {
		if got, err := Pairs("--env", []string{kv}, "="); err == nil {
			t.Errorf("%q: %v", kv, got)
		}
	}
}
