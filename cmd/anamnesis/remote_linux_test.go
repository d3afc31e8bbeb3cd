package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemoteWaits: when the bucket gets the intent of a jump, the files have not moved yet; when it gets the end of a
// turn, it has not been printed.
func TestRemoteWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, rand.New(rand.NewPCG(1, 1)), true, false)
	words := `turns:
  - calls: [{name: WriteFile, arguments: {path: a, content: a}}]
  - calls: [{name: WriteFile, arguments: {path: b, content: b}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: not that way}}]
  - reply: All is well.
`
	m := r.newMachine()
	if err := os.WriteFile(r.script, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	began := make(chan *process, 1)
	jumped, ended := false, false
	r.proxied = func(proxy *faultProxy) {
		proxy.watch(func(_ int, object []byte, acted bool) bool {
			p := <-began
			defer func() { began <- p }()
			if !acted && bytes.Contains(object, []byte(`"kind":"jump.intended"`)) {
				jumped = true
				if _, err := os.Stat(filepath.Join(m.dir, "b")); err != nil {
					t.Errorf("files moved before the jump was safe: %v", err)
				}
			}
			if !acted && bytes.Contains(object, []byte(`"kind":"turn.ended"`)) {
				ended = true
				if out := p.out.String(); strings.Contains(out, "Ended ") {
					t.Errorf("the end of the turn was printed before it was safe:\n%s", out)
				}
			}
			return false
		})
	}
	p := r.run(m, 0)
	began <- p
	r.wait(p)
	if p.code() != 0 || !jumped || !ended {
		t.Errorf("exit code %d, jumped %v, ended %v\n%s", p.code(), jumped, ended, p.out.String())
	}
	if _, err := os.Stat(filepath.Join(m.dir, "b")); err == nil {
		t.Error("the jump moved no file")
	}
}
