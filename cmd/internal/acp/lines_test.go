package acp

import (
	"bytes"
	"strings"
	"testing"
)

// TestProxyLines: every line is forwarded as it is, however long and also if it is no message, and in its order.
func TestProxyLines(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s-1","text":"` +
		strings.Repeat("x", 12<<20) + `"}}`
	said := strings.Join(
		[]string{"half {", "\x00\x00", odd, long, `[1]`, "", `{"jsonrpc":"2.0","method":"last"}`}, "\n")
	var toAgent, toEditor bytes.Buffer
	p := newProxy(nil, nil, &toEditor, &toAgent)
	if err := eachLine(strings.NewReader(said), func(line []byte) error { return p.fromEditor(t.Context(), line) }); err != nil || toAgent.String() != said {
		t.Errorf("%v: the agent got %d bytes, want %d", err, toAgent.Len(), len(said))
	}
	if err := eachLine(strings.NewReader(said), func(line []byte) error { return p.fromAgent(t.Context(), line) }); err != nil || toEditor.String() != said {
		t.Errorf("%v: the editor got %d bytes, want %d", err, toEditor.Len(), len(said))
	}
}
