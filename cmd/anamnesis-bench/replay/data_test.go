package replay

import "testing"

// TestDecodeRun: what recorders write otherwise is read: contents of several parts, arguments
// that are an object or no JSON, other names, no start, no repository.
func TestDecodeRun(t *testing.T) {
	for call, want := range map[string]string{
		`{"arguments":"{\"command\":\"make\"}"}`:                         "make",
		`{"arguments":{"command":"make"}}`:                               "make",
		`{"arguments":{"cmd":["bash","-lc","make all"]}}`:                "make all",
		`{"arguments":{"command":["make","all"]}}`:                       "make all",
		`{"arguments":"SELECT 1"}`:                                       "SELECT 1",
		`{"arguments":{"path":"a.go"}}`:                                  "",
		`{}`:                                                             "",
		`{"arguments":"{\"code\":\"print(1)\",\"timeout\":3}","x":null}`: "print(1)",
	} {
		r, err := decodeRun([]byte(`{"id":"r","started":null,"messages":[{"role":"user","content":[{"type":"text","text":"do"},{"type":"image"}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":` + call + `}]},
			{"role":"tool","tool_call_id":"1","content":[{"text":"no rule"}]}]}`))
		if err != nil || len(r.Calls) != 1 || r.Calls[0].Command != want || r.Calls[0].Text != "no rule" || r.Request != "do\n" {
			t.Errorf("%s: got %+v, %v; want command %q", call, r, err, want)
		}
	}
}
