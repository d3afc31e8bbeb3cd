package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestMalformed: the agent answers what is no message by the protocol's error, with the request's id where
// it can be read, and serves what follows.
func TestMalformed(t *testing.T) {
	big := strings.Repeat("x", maxMessageBytes)
	for name, tt := range map[string]struct {
		line, id string
		code     int
	}{
		"no JSON":               {"hello", "null", parseError},
		"half a message":        {`{"jsonrpc":"2.0","id":4,"method":"initialize"`, "4", parseError},
		"NUL bytes":             {"\x00\x00", "null", parseError},
		"a batch":               {`[{"jsonrpc":"2.0","id":4,"method":"initialize"}]`, "null", invalidRequest},
		"a number":              {"7", "null", invalidRequest},
		"null":                  {"null", "null", invalidRequest},
		"no method and no id":   {`{"jsonrpc":"2.0"}`, "null", invalidRequest},
		"an odd method":         {`{"jsonrpc":"2.0","id":"a","method":5}`, `"a"`, invalidRequest},
		"an odd version":        {`{"jsonrpc":2,"id":4,"method":"initialize"}`, "4", invalidRequest},
		"an odd id":             {`{"jsonrpc":"2.0","id":{"a":1},"method":"initialize"}`, "null", invalidRequest},
		"too large":             {`{"jsonrpc":"2.0","id":4,"method":"session/prompt","params":"` + big + `"}`, "4", invalidRequest},
		"much too large":        {`{"jsonrpc":"2.0","id":4,"params":"` + strings.Repeat(big, 4) + `"}`, "4", invalidRequest},
		"too large, no id":      {`{"jsonrpc":"2.0","params":"` + big + `","id":4}`, "null", invalidRequest},
		"too large, no message": {big + "y", "null", invalidRequest},
	} {
		read, write := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			in := strings.NewReader(tt.line + "\n\n" + `{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":1}}` + "\n")
			ended <- Serve(t.Context(), Options{}, io.MultiReader(in, untilRead{t}), write, io.Discard)
		}()
		out := bufio.NewScanner(read)
		var got []string
		for i := 0; i < 2 && out.Scan(); i++ {
			got = append(got, out.Text())
		}
		var e struct {
			ID    json.RawMessage
			Error struct{ Code int }
		}
		if len(got) != 2 || json.Unmarshal([]byte(got[0]), &e) != nil || string(e.ID) != tt.id || e.Error.Code != tt.code {
			t.Errorf("%s: %q, want error %d of %s", name, got, tt.code, tt.id)
		} else if !strings.Contains(got[1], `"id":9,`) || !strings.Contains(got[1], `"result":`) {
			t.Errorf("%s: the next request got %s", name, got[1])
		}
		read.Close()
	}
}

// untilRead is an input that stays open as long as the test.
type untilRead struct{ t *testing.T }

func (u untilRead) Read([]byte) (int, error) {
	<-u.t.Context().Done()
	return 0, io.EOF
}

// TestMalformedResponse: a request does not wait for ever for a response that cannot be read.
func TestMalformedResponse(t *testing.T) {
	message, _, why := valid([]byte(`{"jsonrpc":"2.0","id":3,"error":"no"}`))
	var m struct {
		ID    int
		Error struct{ Code int }
	}
	if err := json.Unmarshal(message, &m); err != nil || why != "" || m.ID != 3 || m.Error.Code != -32603 {
		t.Errorf("%s, %s, %v", message, why, err)
	}
}

// TestProxyLines: a line of the editor's that is not JSON is answered and not forwarded. Everything else is
// forwarded as it is, however long, and in its order; the agent's lines always are.
func TestProxyLines(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s-1","text":"` + strings.Repeat("x", maxReadBytes+1<<20) + `"}}`
	lines := []string{odd, long, `[1]`, "", `{"jsonrpc":"2.0","method":"last"}`}
	var toAgent, toEditor bytes.Buffer
	p := newProxy(nil, nil, &toEditor, &toAgent)
	in := strings.Join(append([]string{"half {", "\x00\x00"}, lines...), "\n")
	if err := each(strings.NewReader(in), p.agent, func(line []byte) error { return p.fromEditor(t.Context(), line) }); err != nil {
		t.Fatal(err)
	}
	if toAgent.String() != strings.Join(lines, "\n") {
		t.Errorf("the agent got %d bytes, want %d", toAgent.Len(), len(strings.Join(lines, "\n")))
	}
	if want := strings.Repeat(fmt.Sprintf(`{"error":{"code":%d,"message":"the line is not JSON; it was not forwarded"},"id":null,"jsonrpc":"2.0"}`+"\n", parseError), 2); toEditor.String() != want {
		t.Errorf("the editor got %s", toEditor.String())
	}
	toEditor.Reset()
	said := strings.Join([]string{"a log line", long, odd}, "\n") + "\n"
	if err := each(strings.NewReader(said), p.editor, func(line []byte) error { return p.fromAgent(t.Context(), line) }); err != nil || toEditor.String() != said {
		t.Errorf("%v: the editor got %d bytes, want %d", err, toEditor.Len(), len(said))
	}
}
