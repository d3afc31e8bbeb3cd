package loop

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	openAI = `{"role":"user","content":"Go."}
{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}
{"role":"tool","tool_call_id":"1","content":"Error: no such file"}
`
	parts = `{"type":"session","id":"x"}
{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"I read."},{"type":"toolCall","id":"1","name":"read_file","arguments":{"path":"a"}}]}}
{"type":"message","message":{"role":"toolResult","toolCallId":"1","isError":true,"content":[{"type":"text","text":"Error: no such file"}]}}
`
	oneFunction = `{"role":"assistant","content":null,"function_call":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}
{"role":"function","name":"read_file","content":"Error: no such file"}
`
	ollama = `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"read_file","arguments":{"path":"a"}}}]}
{"role":"tool","tool_name":"read_file","content":"Error: no such file"}
`
	anthropic = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"read_file","input":{"path":"a"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"Error: no such file"}]}]}}
`
	custom = `{"type":"custom_tool_call","call_id":"1","name":"read_file","input":"\"path\" a"}
{"type":"custom_tool_call_output","call_id":"1","output":"Error: no such file"}
`
	events = `[{"id":1,"source":"user","action":"message","message":"Go.","args":{"content":"Go."}},
{"id":2,"source":"agent","action":"read_file","message":"Reading a","args":{"path":"a","thought":"I read."}},
{"id":3,"source":"agent","observation":"error","message":"Error","cause":2,"content":"It ends so: Error: no such file","extras":{}},
{"id":4,"source":"environment","action":"change_agent_state","args":{}},{"id":5,"source":"user","action":"run","args":{}}]`
	// A history of pairs, as it was kept before events had numbers.
	pairs = `{"instance_id":"a__b-1","instruction":"Go.","history":[
[{"source":"user","action":"message","args":{"content":"Go."}},{"observation":"null","content":"","extras":{}}],
[{"source":"agent","action":"message","args":{"content":"I read."}},{"observation":"null","content":"","extras":{}}],
[{"action":"read_file","args":{"path":"a","thought":"I read."}},{"observation":"error","content":"Error: no such file","extras":{}}],
[{"action":"null","args":{}},{"observation":"run","content":"a background command's","extras":{}}]],"metrics":{}}`
	sdk = `{"kind":"SystemPromptEvent","source":"agent","system_prompt":{"type":"text","text":"You are."},"tools":[]}
{"kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Go."}]}}
{"kind":"ActionEvent","id":"e1","source":"agent","thought":[{"type":"text","text":"I read."}],"action":{"kind":"ReadAction","path":"a"},"tool_name":"read_file","tool_call_id":"t1",
"tool_call":{"id":"t1","name":"read_file","arguments":"{\"path\":\"a\",\"security_risk\":\"LOW\"}"}}
{"kind":"ObservationEvent","id":"e2","source":"environment","tool_name":"read_file","tool_call_id":"t1","action_id":"e1","observation":{"kind":"ReadObservation","is_error":true,"content":[{"type":"text","text":"It ends so: Error: no such file"}]}}
{"kind":"ConversationStateUpdateEvent","key":"k","value":{}}
{"kind":"ActionEvent","id":"e3","source":"agent","action":{"kind":"FinishAction","message":"Done."},"tool_name":"finish","tool_call_id":"t2"}`
	// Fields of other meanings, beside those of a message.
	beside = `{"role":"assistant","name":{"first":"A"},"type":1,"source":{"file":"x"},"action":{"kind":"call"},"observation":[],"function_call":"none","payload":{"of":"others"},"content":[
{"type":"text","text":"I read.","is_error":"no"},{"type":"tool_use","id":"1","name":"read_file","input":{"path":"a"}}]}
{"role":"tool","tool_call_id":"1","content":"Error: no such file","source":"agent","action":"answer"}
`
	gemini = `[{"role":"user","parts":[{"text":"Go."}]},
{"role":"model","parts":[{"functionCall":{"name":"read_file","args":{"path":"a"}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"read_file","response":{"error":"Error: no such file"}}}]}]`
)

// TestReadRecording reads the same call out of every form.
func TestReadRecording(t *testing.T) {
	array := "[" + strings.Join(strings.Split(strings.TrimSpace(openAI), "\n"), ",") + "]"
	sdkList := strings.ReplaceAll(strings.ReplaceAll(sdk, "\n", ","), `"t1",,`, `"t1",`)
	numbered := strings.NewReplacer(`"id":2`, `"id":0`, `"cause":2`, `"cause":0`).Replace(events)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(parts)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ data, run string }{
		"lines of messages":  {openAI, "1"},
		"an array":           {array, "1"},
		"runs":               {`[{"task_id":7,"traj":` + array + `}]`, "1 (7)"},
		"one run":            {`{"id":"r","messages":` + array + `}`, "1 (r)"},
		"lines around parts": {parts, "1"},
		"gzipped":            {zipped.String(), "1"},
		"one function":       {oneFunction, "1"},
		"without ids":        {ollama, "1"},
		"blocks":             {anthropic, "1"},
		"items of a text":    {custom, "1"},
		"Gemini's parts":     {gemini, "1"},
		"events":             {events, "1"},
		"other fields":       {beside, "1"},
		"a history":          {`{"instance_id":"a__b-1","test_result":{},"metadata":{"history":3},"history":` + numbered + `,"error":null}`, "1 (a__b-1)"},
		"a history of pairs": {pairs, "1 (a__b-1)"},
		"a trajectory":       {`{"trajectory":` + events + `}`, "1"},
		"two tellings":       {`{"instance_id":"c","history":` + array + `,"trajectory":` + events + `}`, "1 (c)"},
		"the SDK's events":   {sdk, "1"},
		"the SDK's history":  {`{"instance_id":"d","history":[` + sdkList + `]}`, "1 (d)"},
	} {
		runs, err := ReadRecording(strings.NewReader(tt.data))
		if err != nil || len(runs) != 1 || len(runs[0].Calls) != 1 {
			t.Errorf("%s: %+v, %v; want one run of one call", name, runs, err)
			continue
		}
		c := runs[0].Calls[0]
		if runs[0].Name != tt.run || c.Tool != "read_file" || !strings.Contains(c.Args, `"path"`) || strings.Contains(c.Args, "thought") || !strings.Contains(c.Result, "Error: no such file") || !c.Failed {
			t.Errorf("%s: run %q, %+v", name, runs[0].Name, c)
		}
	}
	for _, bad := range []string{"", "no JSON", "[1,2]", `{"a":1}`, `["x`, "\x1f\x8bno gzip", `{"history":["a",["b","c"],[{},{}]]}`, `{"history":"a"}`} {
		if _, err := ReadRecording(strings.NewReader(bad)); !errors.Is(err, ErrRecording) {
			t.Errorf("%q: %v, want ErrRecording", bad, err)
		}
	}
}

// TestEvaluations: each line of an evaluation's output is a run with its own
// calls; one that ended in an error has no history.
func TestEvaluations(t *testing.T) {
	edit := func(n int) string {
		return fmt.Sprintf(`[{"id":%d,"source":"agent","action":"edit","args":{"line":%d}},{"id":%d,"cause":%d,"observation":"edit","content":"ok"}]`, 2*n, n, 2*n+1, 2*n)
	}
	runs, err := ReadRecording(strings.NewReader(`{"instance_id":"one","history":[` + edit(1) + `,` + edit(2) + `]}
{"instance_id":"two","history":null,"error":"no image"}
{"instance_id":"three","history":[` + edit(1) + `]}`))
	if err != nil || len(runs) != 2 || runs[0].Name != "1 (one)" || runs[1].Name != "2 (three)" || len(runs[0].Calls) != 2 || len(runs[1].Calls) != 1 {
		t.Fatalf("%+v, %v; want one of 2 calls and three of 1", runs, err)
	}
	for _, r := range runs {
		for _, c := range r.Calls {
			if c.Result != "ok" || c.Failed {
				t.Errorf("run %s: %+v", r.Name, c)
			}
		}
	}
}

// TestEvents: what an event says besides the call makes no other call of it, and
// what it was called with is kept.
func TestEvents(t *testing.T) {
	runs, err := ReadRecording(strings.NewReader(`
{"id":1,"source":"agent","action":"think","args":{"thought":"First this."}}
{"id":2,"source":"agent","action":"think","args":{"thought":"Then that."}}
{"kind":"ActionEvent","tool_name":"terminal","tool_call_id":"a","action":{"kind":"TerminalAction","command":"ls"},"tool_call":{"arguments":"{\"command\":\"ls\",\"summary\":\"look\"}"}}
{"kind":"UserRejectObservation","tool_name":"terminal","tool_call_id":"a","rejection_reason":"no"}
{"kind":"ActionEvent","tool_name":"terminal","tool_call_id":"b","action":null,"tool_call":{"arguments":"{\"command\":1}"}}
{"kind":"AgentErrorEvent","tool_name":"terminal","tool_call_id":"b","error":"command is no text"}
{"kind":"ActionEvent","tool_name":"terminal","tool_call_id":"c","action":{"kind":"TerminalAction","command":"make"}}
{"kind":"ObservationEvent","tool_name":"terminal","tool_call_id":"c","observation":{"output":"made","exit_code":0}}`))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%+v, %v; want a run", runs, err)
	}
	var got []string
	for _, c := range runs[0].Calls {
		got = append(got, fmt.Sprintf("%s %s: %s %v in %s", c.Tool, c.Args, c.Result, c.Failed, c.World))
	}
	want := []string{
		`think {"thought":"First this."}:  false in world 0`,
		`think {"thought":"Then that."}:  false in world 0`,
		`terminal {"command":"ls"}: no true in world 0`,
		`terminal {"command":1}: command is no text true in world 0`,
		`terminal {"command":"make"}: {"output":"made","exit_code":0} false in world 0`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestResultsWithoutIDs: results that name no call belong to the calls of the
// reply before them, by their name and in their order; one that is missing
// moves none of the next reply's.
func TestResultsWithoutIDs(t *testing.T) {
	runs, err := ReadRecording(strings.NewReader(`
{"role":"model","parts":[{"functionCall":{"name":"read"}},{"functionCall":{"name":"list"}},{"functionCall":{"name":"read"}}]}
{"role":"user","parts":[{"functionResponse":{"name":"list","response":"2"}},{"functionResponse":{"name":"read","response":"1"}}]}
{"role":"model","parts":[{"functionCall":{"name":"read"}},{"functionCall":{"name":"list"}}]}
{"role":"tool","content":"4"}
{"role":"tool","content":"5"}
{"role":"tool","content":"nobody's"}`))
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, c := range runs[0].Calls {
		results = append(results, c.Result)
	}
	if want := []string{"1", "2", "", "4", "5"}; !slices.Equal(results, want) {
		t.Errorf("results %q, want %q", results, want)
	}
}

// TestOtherResults: a call whose results differ goes round in no form.
func TestOtherResults(t *testing.T) {
	var sb strings.Builder
	for i := range 6 {
		fmt.Fprintf(&sb, `{"role":"assistant","content":[{"type":"tool_use","id":"e%d","name":"edit","input":{"line":%d}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"e%d","content":"ok"}]}
{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"bash","input":{"command":"go test ./..."}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%d tests fail"}]}
`, i, i, i, i, i, 6-i)
	}
	runs, err := ReadRecording(strings.NewReader(sb.String()))
	if err != nil || len(runs) != 1 || len(runs[0].Calls) != 12 {
		t.Fatalf("%+v, %v; want a run of 12 calls", runs, err)
	}
	if found := Detect(runs[0].Calls); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

// TestRecordedWorlds: only what may change the world makes another of it.
func TestRecordedWorlds(t *testing.T) {
	var r recorder
	for _, c := range []struct{ name, args, result string }{
		{"read_file", `{}`, "x"}, {"bash", `{"command":"ls -l"}`, "x"}, {"run", `{"command":"ls -l"}`, "x"}, {"bash", `{"command":"make"}`, "Error: 2"},
		{"get_user", `{}`, "x"}, {"write_file", `{}`, "ok"}, {"read_file", `{}`, "x"},
		{"terminal", `{"command":"ls"}`, "x"}, {"file_editor", `{"command":"view"}`, "x"}, {"file_editor", `{"command":"create"}`, "x"}, {"terminal", `{"command":"make"}`, "x"}, {"read_file", `{}`, "x"},
	} {
		r.call("id", c.name, c.args)
		r.result("id", c.result, false)
	}
	for i, want := range []string{"world 0", "world 0", "world 0", "world 0", "world 0", "world 0", "world 1", "world 1", "world 1", "world 1", "world 2", "world 3"} {
		if got := r.calls[i].World; got != want {
			t.Errorf("call %d ran in %q, want %q", i+1, got, want)
		}
	}
}

// TestRecordedJumps: in chat messages each reply is a step, and a jump to a
// path that was left, or one that failed, is none back.
func TestRecordedJumps(t *testing.T) {
	for name, tt := range map[string]struct {
		jumps  string // where each reply jumps to; - for another call, ! after one that fails
		counts int
	}{
		"back to the beginning": {"0 0 0 0", 4},
		"work in between":       {"- 1 - - 1 - 1 - 1", 4},
		"forward":               {"- - 0 2 0 2 0 2 0", 4},
		"failed":                {"0 0! 0 0! 0", 3},
		"steps it cannot know":  {"90 90 90 90", 4},
	} {
		var r recorder
		for i, to := range strings.Fields(tt.jumps) {
			to, failed := strings.CutSuffix(to, "!")
			r.step()
			if to == "-" {
				r.call("id", "write_file", `{}`)
			} else {
				r.call("id", "jump_to_step", fmt.Sprintf(`{"step_id":%s,"reason":"reason %d"}`, to, i))
			}
			r.result("id", "", failed)
		}
		n := 0
		for _, c := range r.calls {
			if c.Back != nil {
				n++
			}
		}
		if n != tt.counts {
			t.Errorf("%s: %d jumps back, want %d", name, n, tt.counts)
		}
		if flagged := slices.ContainsFunc(Detect(r.calls), func(f Finding) bool { return f.Rule == RuleJump }); flagged != (n >= JumpAt) {
			t.Errorf("%s: flagged is %v", name, flagged)
		}
	}
}

func FuzzReadRecording(f *testing.F) {
	f.Add([]byte(openAI))
	for _, form := range []string{parts, oneFunction, ollama, anthropic, custom, gemini, events, pairs, sdk} {
		f.Add([]byte(form))
	}
	f.Add([]byte(`[{"traj":[{"role":"tool"}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, err := ReadRecording(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, r := range runs {
			for _, found := range Detect(r.Calls) {
				if found.At > len(r.Calls) || found.First < 1 || found.First > found.At {
					t.Errorf("a finding outside its run: %+v", found)
				}
			}
		}
	})
}
