package shell

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool"
)

// spilled returns the first run of four bytes of a secret that a text holds.
func spilled(text, secret string) string {
	for i := range len(secret) - 3 {
		if part := secret[i : i+4]; strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// TestCutsThroughSecrets puts secrets at every place around the ends of what is
// kept of an output: of a line, of the head and of the tail. Nothing of one is
// left, whether it is known or has a secret's form, and however it arrives.
func TestCutsThroughSecrets(t *testing.T) {
	const runes, line = 120, 40
	known := "Kn0wQzPl4iVxW7jK"
	r := redact.New(nil, []redact.Secret{{Kind: "known", Value: known}})
	filler := strings.Repeat("- ", 15) + "-\n"
	for _, in := range []string{
		known, "DB_PASSWORD=hUnt3rQz99xW", "https://u:hUnt3rQz99xW@h", "Bearer hUnt3rQz99xWkJ7d4m",
		"ghp_" + "1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R", "PGPASSWORD='hUnt 3rQz 99xW kJ7d 4mVb Zr8N pLw4'",
	} {
		secret := in[strings.IndexAny(in, "=:K ")+1:]
		secret = strings.Trim(strings.TrimSuffix(strings.TrimPrefix(secret, "//u:"), "@h"), "'")
		for shift := range 2*line + 10 {
			texts := []string{
				// a line's limit
				strings.Repeat(". ", shift/2) + strings.Repeat(".", shift%2) + in + "\nend\n",
				// the head's
				filler + strings.Repeat(".", shift) + " " + in + "\n" + strings.Repeat(filler, 20),
				// the tail's
				strings.Repeat(filler, 20) + in + " " + strings.Repeat("- ", shift%line) + "\n" + filler + "- - -\n.",
				strings.Repeat(filler, 20) + strings.Repeat("\n", shift) + in + "\n" +
					strings.Repeat("\n", 2*line-shift%(2*line)),
			}
			for n, text := range texts {
				for _, size := range []int{1, 7, 1 << 10} {
					env := tool.Env{Redactor: r}
					o := newOutputs(runes, line, &env)
					for p := range slices.Chunk([]byte(text), size) {
						o.write(guard.Stdout, p)
					}
					res := o.result(guard.Outcome{}, time.Second)
					if part := spilled(res.Text+res.Stdout, secret); part != "" {
						t.Fatalf("%q, text %d, shift %d, %d bytes at once: %q is left of %q in\n%s", in, n, shift, size,
							part, secret, res.Text)
					}
					if len(res.Secrets) != 1 {
						t.Fatalf("%q, text %d, shift %d: found %v in %q", in, n, shift, res.Secrets, text)
					}
				}
			}
		}
	}
}

// TestCutsThroughAKey drops the first lines of a private key: the rest of it is
// one all the same.
func TestCutsThroughAKey(t *testing.T) {
	var key strings.Builder
	key.WriteString("-----BEGIN PRIVATE KEY-----\n")
	for i := range 20 {
		fmt.Fprintf(&key, "%sb3x9Z7Qw\n", strings.Repeat(string(rune('A'+i))+"q/4", 8))
	}
	key.WriteString("Qw==\n-----END PRIVATE KEY-----\n")
	env := tool.Env{Redactor: redact.New(nil, nil)}
	for before := range 30 {
		o := newOutputs(600, 100, &env)
		o.write(guard.Stdout, []byte(strings.Repeat("a line of text\n", before)+key.String()+"the end\n"))
		if res := o.result(guard.Outcome{}, time.Second); strings.Contains(res.Text, "b3x9Z7Qw") ||
			strings.Contains(res.Text, "Qw==") || res.Cut == 0 {
			t.Fatalf("%d lines before it: %s", before, res.Text)
		}
	}
}

// TestOutputsInTurns: the outputs stay in the order they came in, line by line,
// and a secret that the other output interrupts is one all the same.
func TestOutputsInTurns(t *testing.T) {
	env := tool.Env{Redactor: redact.New(nil, []redact.Secret{{Kind: "known", Value: "Kn0wQzPl4iVxW7jK"}})}
	o := newOutputs(1000, 100, &env)
	for _, p := range []struct {
		s    guard.Stream
		text string
	}{
		{guard.Stdout, "one\n"}, {guard.Stderr, "two\n"}, {guard.Stdout, "three Kn0wQz"}, {guard.Stderr, "four\n"}, {guard.Stdout, "Pl4iVxW7jK\n"}, {guard.Stderr, "five"},
	} {
		o.write(p.s, []byte(p.text))
	}
	res := o.result(guard.Outcome{}, time.Second)
	mark := res.Secrets[0].Marker
	if want := "one\ntwo\nfour\nthree " + mark + "\nfive\n[exit 0]"; res.Text != want {
		t.Errorf("text %q, want %q", res.Text, want)
	}
	if res.Stdout != "one\nthree "+mark+"\n" || res.Stderr != "two\nfour\nfive" {
		t.Errorf("apart: %q, %q", res.Stdout, res.Stderr)
	}
}

// TestOutputLive: a user who watches sees each line once it is complete, and no secret.
func TestOutputLive(t *testing.T) {
	secret := "q7Zt9Kp2Lw8Xv4Rn"
	var seen strings.Builder
	lines := make(chan struct{}, 1)
	env := &tool.Env{Call: "c", Dir: t.TempDir(),
		Redactor: redact.New(nil, []redact.Secret{{Kind: "k", Value: secret}})}
	begin := filepath.Join(env.Dir, "go")
	env.Output = func(p []byte) {
		if seen.Write(p); strings.Contains(seen.String(), "first\n") {
			select {
			case lines <- struct{}{}:
			default:
			}
		}
	}
	done := make(chan error, 1)
	go func() {
		args, _ := json.Marshal(map[string]any{
			"command": "echo first; until [ -e go ]; do sleep 0.01; done; echo key " + secret[:8] + "''" + secret[8:],
		})
		_, err := Bash().Call(t.Context(), env, args)
		done <- err
	}()
	<-lines // while the command runs
	if err := os.WriteFile(begin, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || strings.Contains(seen.String(), secret) ||
		!strings.Contains(seen.String(), "key [") {
		t.Errorf("%v: saw %q", err, seen.String())
	}
}
