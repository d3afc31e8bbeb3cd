//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// mailWords is an agent without a memory of its own: it does what its context
// calls for, so that a call whose outcome is unknown is made again. It writes a
// file, sends a D-Mail, then one that takes the files back, too.
func mailWords() string {
	const turn = `  - choose:
      - {when: {on: all-joined, contains: "future self]\nover again"}, reply: Done.}
      - {when: {on: all-joined, contains: "future self]\nfirst"}, calls: [{name: SendDMail, arguments: {checkpoint_id: 1, message: over again, restore_files: true}}]}
      - {when: {on: all-joined, contains: "[step 2]"}, calls: [{name: SendDMail, arguments: {checkpoint_id: 1, message: first}}]}
      - {when: {on: all-joined, contains: "[step 1]"}, calls: [{name: Bash, arguments: {command: "echo two > kept.txt"}}]}
      - {calls: [{name: WriteFile, arguments: {path: kept.txt, content: "one\n"}}]}
`
	return "turns:\n" + strings.Repeat(turn, 12)
}

// TestCrashInMail kills a task after some of the appends between the reply that sends a
// D-Mail and the next request. Resumed, the task ends as it does without a crash: same files,
// same context, each D-Mail delivered once. The nightly run takes every append, and kills the
// resume after its first append.
func TestCrashInMail(t *testing.T) {
	t.Parallel()
	heavy(t)
	script := filepath.Join(t.TempDir(), "words.yaml")
	if err := os.WriteFile(script, []byte(mailWords()), 0o644); err != nil {
		t.Fatal(err)
	}
	want := mailedRun(t, script, "")
	if len(want.kills) < 12 || len(want.kills) > 40 {
		t.Fatalf("%d operations from a D-Mail's reply to the next request, want one or two dozen", len(want.kills))
	}
	for _, seq := range everyNth(4, want.kills) {
		t.Run(fmt.Sprint("op", seq), func(t *testing.T) {
			t.Parallel()
			got := mailedRun(t, script, fmt.Sprint("op:", seq))
			if got.context != want.context || got.kept != want.kept {
				t.Errorf("it ends with %q in the file and this context:\n%s\nwant %q and\n%s", got.kept, got.context,
					want.kept, want.context)
			}
		})
	}
}

// mailedEnd is how a task with D-Mails ended.
type mailedEnd struct {
	context string // without numbers: a crash takes some operations and steps more
	kept    string // what the file holds
	kills   []uint64
}

var anyNumber = regexp.MustCompile(`\d+`)

// mailedRun runs the task to its end, through a crash where kill names one, and
// checks what must hold of every end.
func mailedRun(t *testing.T, script, kill string) mailedEnd {
	t.Helper()
	dir := t.TempDir()
	world, home := filepath.Join(dir, "w"), filepath.Join(dir, "home")
	if err := os.Mkdir(world, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"ANAMNESIS_HOME=" + home}
	out, err := program(t.Context(), append(env, killVariable+"="+kill), "run", "--dir", world, "--model",
		"script:"+script, "--approval", "auto", "--tools", "SendDMail", "--task", "t", "Go.")
	if kill != "" {
		if !killed(err) {
			t.Fatalf("the run was not killed: %v\n%s", err, out)
		}
		if *nightly {
			if out, err = program(t.Context(), append(env, killVariable+"=append:1"), "resume", "t"); !killed(err) {
				t.Fatalf("the resume was not killed: %v\n%s", err, out)
			}
		}
		out, err = program(t.Context(), env, "resume", "t")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h := taskdir.Home{State: home}
	var end mailedEnd
	sending, mails, passes := false, 0, 0
	err = taskdir.EachOp(h, "t", func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.ModelReplied:
			if sending = len(b.Calls) > 0 && b.Calls[0].Name == "SendDMail"; sending {
				mails++
			}
		case *op.PassDone:
			if b.Trigger == "mail" {
				passes++
			}
		}
		if sending && (*nightly || mails == 1 || o.Seq%2 == 0) {
			end.kills = append(end.kills, o.Seq)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	st, seen := guardedOps(t, h)
	if st.Said.Answer != "Done." || seen["mail.delivered"] != 1 || seen[op.KindJumpDone] != 1 || passes != 2 {
		t.Errorf("%q after %d D-Mails, %d jumps and %d passes for them; want Done. after one, one and two",
			st.Said.Answer, seen["mail.delivered"], seen[op.KindJumpDone], passes)
	}
	for _, m := range st.Context.Chat() {
		// Each run has a directory and a word of its own.
		text := strings.NewReplacer(st.Opened.Dir, "DIR", st.Opened.Mark, "WORD").Replace(m.Text)
		end.context += anyNumber.ReplaceAllString(fmt.Sprintf("--- %s\n%s\n", m.Role, text), "#")
	}
	kept, err := os.ReadFile(filepath.Join(world, "kept.txt"))
	if err != nil {
		t.Fatal(err)
	}
	end.kept = string(kept)
	return end
}
