package blame

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool/file"
)

// TestChoose: which of a step's calls wrote a line.
func TestChoose(t *testing.T) {
	edit := func(seq uint64, path, args string) call {
		return call{Op: Op{Seq: seq}, edits: true, paths: []string{path}, args: args, lines: linesIn(args)}
	}
	command := func(seq uint64, args string) call { return call{Op: Op{Seq: seq}, args: args, lines: linesIn(args)} }
	for _, tt := range []struct {
		name  string
		calls []call
		line  string
		want  string
	}{
		{"the last edit that has it", []call{edit(1, "d/a.go", `{"new":"x\ny"}`), edit(2, "/w/d/a.go", `{"new":"y\r\nz"}`), edit(3, "d/a.go", `{"new":"yy"}`)}, "y", "2"},
		{"an edit of another file did not", []call{edit(1, "a.go", `{"new":"y"}`), command(2, `{"command":"make"}`)}, "y", "2"},
		{"a patch has it with a sign", []call{edit(1, "d/a.go", `{"patch":"@@\n+y\n"}`), edit(2, "d/a.go", `{"patch":"@@\n+yy\n"}`)}, "y", "1"},
		{"a formatter after the edit", []call{edit(1, "d/a.go", `{"new":"  y"}`), command(2, `{"command":"gofmt -w d/a.go"}`), command(3, `{"command":"ls"}`)}, "\ty", "1 2"},
		{"a command that has it", []call{command(1, `{"command":"echo 'y' >> d/a.go"}`), command(2, `{"command":"touch d/a.go"}`)}, "y", "1"},
		{"no command is known to", []call{command(1, `{"command":"make"}`), command(2, `{"command":"make all"}`)}, "y", "1 2"},
		{"a blank line is in every text", []call{edit(1, "d/a.go", `{"new":"a\n\nb"}`), edit(2, "d/a.go", `{"new":"c"}`)}, "", "1 2"},
		{"after the snapshot", []call{command(1, `{"command":"a.go"}`), edit(99, "d/a.go", `{"new":"y"}`)}, "y", "1"},
		{"a background command that does not name the file", []call{{Op: Op{Seq: 1}, job: true, args: `{"command":"serve"}`}, command(2, `{"command":"make"}`)}, "y", "2"},
		{"quotes", []call{edit(1, "d/a.go", `{"new":"say \"<y>\""}`), edit(2, "d/a.go", `{"new":"z"}`)}, `say "<y>"`, "1"},
	} {
		var got []string
		for _, o := range choose(tt.calls, "d/a.go", tt.line, 50) {
			got = append(got, fmt.Sprint(o.Seq))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, got, tt.want)
		}
	}
}

// TestReplay: recorded edits are undone as far as they fit the present text.
func TestReplay(t *testing.T) {
	call := func(step int, args string) edit {
		var r file.Recorded
		if err := json.Unmarshal([]byte(args), &r); err != nil {
			t.Fatal(err)
		}
		return edit{Recorded: r, Origin: Origin{Kind: Step, Step: step}}
	}
	write := call(1, `{"path":"a","content":"one\ntwo\n"}`)
	second := call(2, `{"path":"a","edit":{"old":"two","new":"2\n3"}}`)
	third := call(3, `{"path":"a","edit":[{"old":"one","new":"1"},{"old":"3","new":""}]}`)
	for _, tt := range []struct {
		name, present string
		edits         []edit
		want          string
	}{
		{"no session", "x\n", nil, "before:x"},
		{"all fit", "1\n2\n3\n", []edit{write, second, call(3, `{"path":"a","edit":{"old":"one","new":"1"}}`)}, "step1:one,two step2:one,2,3 step3:1,2,3"},
		{"something was removed", "1\n2\n\n", []edit{write, second, third}, "step1:one,two unknown:one,2, step3:1,2,"},
		{"CRLF", "1\r\n2\r\n3\r\n", []edit{second}, "unknown:1\r,two\r step2:1\r,2\r,3\r"},
		{"changed by hand after the file was written", "one\ntwo\nmine\n", []edit{write}, "step1:one,two unknown:one,two,mine"},
		{"an edit that does not fit", "other\n", []edit{second}, "unknown:other"},
		{"written again", "one\ntwo\n", []edit{second, write}, "step1:one,two"},
		{"a command", "x\n", []edit{{command: true}}, "unknown:x"},
	} {
		var got []string
		for _, v := range replay(tt.present, tt.edits) {
			who := string(v.Kind)
			if v.Kind == Step {
				who = fmt.Sprint("step", v.Step)
			}
			got = append(got, who+":"+strings.ReplaceAll(strings.TrimSuffix(v.text, "\n"), "\n", ","))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, strings.Join(got, " "), tt.want)
		}
	}
}
