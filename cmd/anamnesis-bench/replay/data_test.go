package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/anamnesis/pair"
)

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
		if err != nil || len(r.Calls) != 1 || r.Calls[0].Command != want || r.Calls[0].Text != "no rule" {
			t.Errorf("%s: got %+v, %v; want command %q", call, r, err, want)
		}
	}
}

// TestReplay: a failure is answered from the latest earlier run of its repository that overcame it, and
// from no later one.
func TestReplay(t *testing.T) {
	failing := func(text string) pair.Call { return pair.Call{Output: output("go test ./...", text), Step: 0} }
	run := func(id, repo, fix string) *recorded {
		return &recorded{ID: id, Repo: repo, Calls: []pair.Call{
			failing("a_test.go:3: undefined: parse\nFAIL"), {Output: output(fix, ""), Step: 1}, {Output: output("go test ./...", "ok"), Step: 2},
		}}
	}
	s := &source{name: "x", runs: []*recorded{run("1", "a", "go generate"), run("2", "b", "make"), run("3", "a", "make gen")}}
	for _, id := range []string{"1", "2", "3"} {
		s.questions = append(s.questions, &question{ID: id, Run: id, First: true, Repair: &struct{}{}}, &question{ID: id + "b", Run: id}, &question{ID: id + "c", Run: id, First: true})
	}
	var got []string
	report, err := s.replay(t.Context(), func(a Answer) error {
		got = append(got, a.Question+": "+strings.Join(a.Shown, "; "))
		return nil
	})
	if want := "1: |2: |3: go generate\ngo test ./..."; err != nil || strings.Join(got, "|") != want {
		t.Errorf("%q, %v", got, err)
	}
	if report.Unrepaired != 3 || report.Spoken != 1 || report.Asked != 3 || report.Answered != 1 || report.Pairs != 2 {
		t.Errorf("%+v", report)
	}
}

// TestFacts: each run is told what earlier runs of its repository showed, in the order of their time; models can
// be kept apart, and one source be learned before another.
func TestFacts(t *testing.T) {
	dir := t.TempDir()
	run := func(id, repo, model, started, text string) string {
		return fmt.Sprintf(`{"id":%q,"repo":%q,"model":%q,"started":%q,"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"arguments":"{\"command\":\"pytest -q\"}"}}]},{"role":"tool","tool_call_id":"1","content":%q}]}`,
			id, repo, model, started, text) + "\n"
	}
	const gone, limit = "<returncode>127</returncode>\n<output>\nbash: pytest: command not found\n</output>", "The last command <command>pytest -q</command> timed out and has been killed.\nThe output of the command was:\n <output>\n\n</output>"
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, run("3", "a", "big", "2025-03", gone)+run("1", "a", "big", "2025-01", gone)+run("2", "a", "big", "2025-02", gone)+
		run("4", "a", "small", "2025-04", "Please always provide EXACTLY ONE action")+run("5", "b", "small", "2025-05", limit)+run("6", "b", "small", "2025-06", limit)+run("7", "b", "small", "2025-07", limit))
	z.Close()
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl.gz"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	_, err := Facts(t.Context(), Options{Data: dir, Sources: []string{"x@big", "x@small"}}, func(told Told) error {
		s := told.Run + ":"
		for _, c := range told.Claims {
			s += fmt.Sprintf(" %s %s %d/%d", c.Kind, c.Match, c.Seen, c.Of)
		}
		got = append(got, s)
		return nil
	})
	want := "1:|2:|3: missing pytest 2/2|4: missing pytest 3/3|5:|6:|7: timeout pytest -q 2/2"
	if s := strings.Join(got, "|"); err != nil || s != want {
		t.Errorf("%s, %v\nwant %s", s, err, want)
	}
}
