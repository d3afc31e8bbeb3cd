package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		proxy.watch(func(create int, acted bool) bool {
			if !acted { // it is not safe before the answer
				return false
			}
			data, err := r.bucket().Get(t.Context(), fmt.Sprintf("tasks/%s/log/%016d", rigTask, create))
			if err != nil {
				t.Error(err)
				return false
			}
			object := r.unzip(data)
			p := <-began
			defer func() { began <- p }()
			if bytes.Contains(object, []byte(`"kind":"jump.intended"`)) {
				jumped = true
				if _, err := os.Stat(filepath.Join(m.dir, "b")); err != nil {
					t.Errorf("files moved before the jump was safe: %v", err)
				}
			}
			if bytes.Contains(object, []byte(`"kind":"turn.ended"`)) {
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

// TestRemoteReads: steps that only read do not wait for the bucket: all are made while its first answer is awaited.
func TestRemoteReads(t *testing.T) {
	t.Parallel()
	r := newRig(t, rand.New(rand.NewPCG(1, 1)), true, false)
	words := "turns:\n" + strings.Repeat("  - calls: [{name: Glob, arguments: {pattern: '*'}}]\n", 10) +
		"  - reply: Read.\n"
	if err := os.WriteFile(r.script, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	began := make(chan *process, 1)
	r.proxied = func(proxy *faultProxy) {
		proxy.watch(func(create int, acted bool) bool {
			if create > 1 || acted {
				return false
			}
			p := <-began
			defer func() { began <- p }()
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(waitLimit); !strings.Contains(p.out.String(), "step 10"); <-tick.C {
				if time.Now().After(deadline) {
					t.Errorf("a step that reads waits for the bucket:\n%s", p.out.String())
					break
				}
			}
			return false
		})
	}
	p := r.run(r.newMachine(), 0)
	began <- p
	r.wait(p)
	if p.code() != 0 || !strings.Contains(p.out.String(), "Read.") {
		t.Errorf("exit code %d\n%s", p.code(), p.out.String())
	}
}

// TestRemoteCommits: commits, also large ones, go through a sealed bucket of an S3 server, and the line that the next
// machine is told fetches them in a clone.
func TestRemoteCommits(t *testing.T) {
	t.Parallel()
	r := newRig(t, rand.New(rand.NewPCG(2, 2)), true, true)
	sh := func(dir, line string) string {
		t.Helper()
		cmd := exec.Command("sh", "-euc", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_AUTHOR_NAME=P", "GIT_AUTHOR_EMAIL=p@p",
			"GIT_COMMITTER_NAME=P", "GIT_COMMITTER_EMAIL=p@p")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	words := `turns:
  - calls: [{name: Bash, arguments: {command: "head -c 3000000 /dev/urandom >a; git add a; git -c user.name=A -c user.email=a@a commit -qm one"}}]
  - calls: [{name: Bash, arguments: {command: "git switch -qc topic; git -c user.name=A -c user.email=a@a commit -q --allow-empty -m two"}}]
  - reply: Committed.
  - reply: Taken over.
`
	if err := os.WriteFile(r.script, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(r.top, "git init -q -b main origin; git -C origin commit -q --allow-empty -m zero; git clone -q origin clone")
	var out string
	var one machine
	for i, args := range [][]string{{"run", "--task", rigTask, "--no-final-pass", "Do it."}, {"resume", rigTask, "Go on."}} {
		m := r.newMachine()
		if err := os.RemoveAll(m.dir); err != nil {
			t.Fatal(err)
		}
		sh(r.top, "git clone -q origin "+m.dir)
		p := r.start(m, 0, args...)
		r.wait(p)
		if out = p.out.String(); p.code() != 0 {
			t.Fatalf("exit code %d\n%s", p.code(), out)
		}
		if i == 0 {
			one = m
		}
	}
	_, line, _ := strings.Cut(out, "\nfor b in ")
	line, _, _ = strings.Cut(line, "\n")
	sh(filepath.Join(r.top, "clone"), "for b in "+line)
	want, got := sh(one.dir, "git rev-parse topic main"), sh(filepath.Join(r.top, "clone"),
		"git rev-parse refs/anamnesis/"+rigTask+"/refs/heads/topic refs/anamnesis/"+rigTask+"/refs/heads/main")
	if got != want {
		t.Errorf("fetched %q, want %q", got, want)
	}
}
