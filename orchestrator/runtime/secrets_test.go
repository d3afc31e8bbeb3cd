package runtime

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/redact"
)

const pemText = `-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun
VTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u+qKhbwKfBstIs+bMY2Zkp18gnTxK
Lx==
-----END RSA PRIVATE KEY-----
`

// TestSecretsOfFiles: what a tool read is put back where it was read, byte for
// byte, and what only looks like a marker stands for itself.
func TestSecretsOfFiles(t *testing.T) {
	files := map[string]string{
		"key.txt":   pemText + "name = old\n",
		"a.conf":    "DB_PASSWORD=hunter2hunter2\r\nX=1\r\n",
		"b.conf":    "Y=1\nDB_PASSWORD=hunter2hunter2\n",
		"notes.txt": "see [redacted:openai-key:3f9a1c] in the docs\n",
		"latin":     "DB_PASSWORD=caf\xe9-hunter2-9\nZ=1\n",
	}
	const env = `(\[redacted:password:[0-9a-f]{6}\])`
	task, h := newTask(t, `turns:
  - calls:
      - {name: ReadFile, arguments: {path: key.txt}}
      - {name: Grep, arguments: {pattern: DB_PASSWORD, output_mode: content}}
      - {name: ReadFile, arguments: {path: notes.txt}}
      - {name: ReadFile, arguments: {path: latin}}
  - expect:
      - {on: all-joined, lacks: [hunter2, MIIEow, VTLw7, "Lx=="], contains: "[redacted:private-key:"}
    capture: {one: '2\t(\[redacted:private-key:\w+\])', two: '3\t(\[redacted:private-key:\w+\])', three: '4\t(\[redacted:private-key:\w+\])', latin: '`+env+`\n     2\tZ', pw: 'b.conf:\d+:DB_PASSWORD=`+env+`'}
    calls:
      - {name: WriteFile, arguments: {path: key.txt, content: "-----BEGIN RSA PRIVATE KEY-----\n{{one}}\n{{two}}\n{{three}}\n-----END RSA PRIVATE KEY-----\nname = new\n"}}
      - {name: StrReplaceFile, arguments: {path: ./a.conf, old: "DB_PASSWORD={{pw}}", new: "DB_PASS={{pw}}"}}
      - {name: StrReplaceFile, arguments: {path: b.conf, edits: [{old: "Y=1", new: "Y={{pw}}"}]}}
      - {name: WriteFile, arguments: {path: notes.txt, content: "look at [redacted:openai-key:3f9a1c]\n"}}
      - {name: WriteFile, arguments: {path: "{{pw}}", content: x}}
      - {name: WriteFile, arguments: {path: own.conf, content: "API_TOKEN=invented-by-me-1\n"}}
      - {name: WriteFile, arguments: {path: other.conf, content: "{{pw}}"}}
      - {name: WriteFile, arguments: {path: latin, content: "DB_PASSWORD={{latin}}\nZ=2\n"}}
  - expect:
      - {on: result, contains: [bytes that are not UTF-8, Nothing was written]}
    calls:
      - {name: StrReplaceFile, arguments: {path: latin, old: "Z=1", new: "Z=3"}}
  - reply: Done.
`, Options{})
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(task.Place.Dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	for name, want := range map[string]string{
		"key.txt": pemText + "name = new\n", "a.conf": "DB_PASS=hunter2hunter2\r\nX=1\r\n",
		"b.conf": "Y=hunter2hunter2\nDB_PASSWORD=hunter2hunter2\n", "notes.txt": "look at [redacted:openai-key:3f9a1c]\n",
		"own.conf": "API_TOKEN=invented-by-me-1\n", "latin": "DB_PASSWORD=caf\xe9-hunter2-9\nZ=3\n",
	} {
		if data, err := os.ReadFile(filepath.Join(task.Place.Dir, name)); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v; want %q", name, data, err, want)
		}
	}
	if list, err := os.ReadDir(task.Place.Dir); err != nil || len(list) != 6 {
		t.Errorf("the directory holds %v, %v", list, err)
	}
	noSecret(t, h.Task("t"), "hunter2", "MIIEow", "VTLw7", "invented-by-me")
}

// TestStrategyIsNoPlaceForSecrets: what the Reflect-Agent proposes stands under
// the key that the hash of a jump's plan has, too.
func TestStrategyIsNoPlaceForSecrets(t *testing.T) {
	task, _ := newTask(t, "turns: []\n", Options{Secrets: []redact.Secret{{Kind: "key", Value: "open-sesame-42"}}})
	const text = "say open-sesame-42"
	seq, err := task.Ledger.Journal.PostSeq(t.Context(), &op.StrategyGiven{
		Diagnosis: text, Abandon: []string{text}, Plan: []string{text}, Question: text, Text: text,
		Looked: []op.Call{{ID: text, Name: text, Args: text}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := task.Ledger.Journal.Log().Get(seq)
	data := rec.Body
	if err != nil || strings.Contains(string(data), "sesame") || strings.Count(string(data), "[redacted:key:") != 8 {
		t.Errorf("%s, %v", data, err)
	}
}

// noSecret looks into every file of a task but its vault.
func noSecret(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "vault.jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s holds %s", path, s)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNothingShownIsSecret: operations, the reply on its way, the outcome, also
// a body so large that it becomes a blob.
func TestNothingShownIsSecret(t *testing.T) {
	var shown strings.Builder
	task, h := newTask(t, `turns:
  - reply: "The key is open-sesame-42, I think, and that is all there is to say about it."
    calls:
      - {name: Bash, arguments: {command: "for i in $(seq 4000); do echo line $i of open-sesame''-42; done"}}
  - fault: {status: 401, body: "Incorrect API key provided: open-sesame-42"}
    reply: never
`, Options{Secrets: []redact.Secret{{Kind: "key", Value: "open-sesame-42"}}, Callbacks: Callbacks{Delta: func(d model.Delta) { shown.WriteString(d.Text) }}})
	task.opts.Callbacks.Op = func(o op.Op) {
		data, err := op.Encode(o.Body)
		if err != nil || strings.Contains(string(data), "open-sesame-42") {
			t.Errorf("op %d shows it: %v", o.Seq, err)
		}
	}
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "failed" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if text := out.Detail + out.Err.Error() + shown.String(); strings.Contains(text, "open-sesame-42") ||
		strings.Count(text, "[redacted:key:") != 3 {
		t.Errorf("shown: %s", text)
	}
	if want := " I think, and that is all there is to say about it."; !strings.HasSuffix(shown.String(), want) {
		t.Errorf("the reply's end is missing: %q", shown.String())
	}
	if _, err := os.Stat(filepath.Join(h.Task("t"), "blobs")); err != nil {
		t.Errorf("no blob was made: %v", err)
	}
	noSecret(t, h.Task("t"), "open-sesame-42")
}
