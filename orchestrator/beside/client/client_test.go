package client

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"anamnesis/orchestrator/taskdir"
)

// TestMain: with the arguments of a hook the test program is the hook.
func TestMain(m *testing.M) {
	Main(os.Args)
	if len(os.Args) > 2 && os.Args[1] == "hook" { // started anew
		_, head, err := Read(os.Stdin)
		until, event := Rest(os.Args[3:])
		json.NewEncoder(os.Stdout).Encode([]any{[]string{os.Args[2], event}, head, err != nil || strconv.FormatInt(until.UnixNano(), 10) != os.Args[3]})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestClient: what the client writes is the request that encoding/json reads, and it reads the
// replies that encoding/json writes. What it does not read itself goes to the program.
func TestClient(t *testing.T) {
	all := t.TempDir()
	folder := filepath.Join(all, "f")
	for _, dir := range []string{folder, filepath.Join(all, "sessions")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(Session(all, "codex", "s1"), []byte(folder+"\n"+all), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := taskdir.Listen(filepath.Join(folder, SocketFile))
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "ODD=a\"\\\x01\t\n<é\xff"}
	hook := func(event string) string {
		cmd := exec.Command(os.Args[0], "hook", "codex", all)
		cmd.Env, cmd.Stdin = environ, strings.NewReader(event)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", event, err)
		}
		return string(out)
	}
	big := strings.Repeat("x", 200_000)
	for _, event := range []string{
		`{"session_id":"s1","cwd":"/w","hook_event_name":"PreToolUse"}`,
		` { "cwd" : "/w", "deep": [{"session_id":"no"}, "cwd", {"a":{"cwd":"no"}}], "n": -1.5e3, "x":null, "e":"\"\\,{[", "session_id" : "s1" , "hook_event_name":"é" } ` + "\n",
		`{"session_id":"s0","session_id":"s1","cwd":"/w","hook_event_name":"Stop","big":"` + big + `"}`,
	} {
		for _, reply := range [][]byte{nil, []byte(`{"a":"<&>` + "\x00\xff" + `"}`), []byte(big)} {
			got := make(chan Request)
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				var req Request
				if err := json.NewDecoder(c).Decode(&req); err != nil {
					t.Error(err)
				}
				json.NewEncoder(c).Encode(Reply{OK: true})
				json.NewEncoder(c).Encode(Reply{OK: true, Reply: reply})
				got <- req
			}()
			if out := hook(event); out != string(reply) {
				t.Fatalf("%.99s: %.99q, want %.99q", event, out, reply)
			}
			req := <-got
			valid := []string{environ[0], strings.ToValidUTF8(environ[1], "\ufffd")}
			if req.Verb != EventVerb || req.Program != Program() || !strings.HasSuffix(req.Event, "-codex"+EventEnding) ||
				!bytes.Equal(req.Data, bytes.TrimSpace([]byte(event))) || !reflect.DeepEqual(req.Environ, valid) {
				t.Errorf("%.99s: %.300q", event, req)
			}
		}
	}
	l.Close()
	for event, want := range map[string]string{
		`{"session_id":"\u0073\u0031","cwd":"/w","hook_event_name":"Stop"}`: `[["codex",""],{"session_id":"s1","cwd":"/w","hook_event_name":"Stop"},false]`,
		`{"session_id":"s1","cwd":"/w","hook_event_name":"ContextCut"}`:     `[["codex",""],{"session_id":"s1","cwd":"/w","hook_event_name":"ContextCut"},false]`,
		`{"session_id":"s2","cwd":"/w","hook_event_name":"Stop"}`:           `[["codex",""],{"session_id":"s2","cwd":"/w","hook_event_name":"Stop"},false]`,
		`{"session_id":"s1","cwd":"/w","hook_event_name":"Stop"`:            `[["codex",""],{"session_id":"","cwd":"","hook_event_name":""},true]`,
		`{"session_id":"s1","cwd":"/w","hook_event_name":"Stop"},{}`:        `[["codex",""],{"session_id":"","cwd":"","hook_event_name":""},true]`,
		"": `[["codex",""],{"session_id":"","cwd":"","hook_event_name":""},true]`,
		`{"session_id":"s1","cwd":"/w","hook_event_name":"Stop","big":"` + big + `"}`: `[["codex",""],{"session_id":"s1","cwd":"/w","hook_event_name":"Stop"},false]`,
	} {
		if out := hook(event); out != want+"\n" {
			t.Errorf("%.99s: %s, want %s", event, out, want)
		}
	}
}
