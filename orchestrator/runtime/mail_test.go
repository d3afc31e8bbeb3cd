package runtime

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/mail"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// TestPlainWords: a text that forbids or threatens keeps models from ever using
// what it is about again.
func TestPlainWords(t *testing.T) {
	texts := []string{systemPrompt(t), tool.MailUnsent, mail.Message{Later: "1"}.String()}
	asked, err := builtin.OptIn("SendDMail", "dmail")
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range append(builtin.Tools(builtin.Options{}), asked...) {
		texts = append(texts, tl.Spec().Description)
	}
	names := globAll(t, "../notice/testdata/notice/[a-v]*.txt") // not words.txt: those are a user's
	names = append(names, globAll(t, "../feature/mail/testdata/*.txt")...)
	// What the model that writes a block is told, and blocks as they are rendered.
	names = append(names, globAll(t, "../../anamnesis/prompt/*.md")...)
	names = append(names, globAll(t, "../../anamnesis/testdata/golden/*_block.txt")...)
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data))
	}
	loud := regexp.MustCompile(`(?i:\b(never|forbidden|must not|prohibited)\b)|\bMUST\b|\bDO NOT\b|\bIMPORTANT\b`)
	for _, text := range texts {
		if found := loud.FindString(text); found != "" {
			t.Errorf("%q occurs in what the model is told:\n%s", found, text)
		}
	}
}

// TestMailErrors: what cannot be sent is not, says why, and costs nothing.
func TestMailErrors(t *testing.T) {
	long := strings.Repeat("word ", 600) // more than an EAS of 8000 allows, 500
	tests := []struct{ name, args, want string }{
		{"no such checkpoint", `{checkpoint_id: 7, message: x}`, "Not sent: no such checkpoint: step 7; valid steps are 0 to 1."},
		{"its own step", `{checkpoint_id: 2, message: x}`, "Not sent: no such checkpoint: step 2; valid steps are 0 to 1."},
		{"negative", `{checkpoint_id: -1, message: x}`, "SendDMail was not run: the arguments do not fit the schema: validating /properties/checkpoint_id: minimum"},
		{"no message", `{checkpoint_id: 0, message: " "}`, "Not sent: the message is empty"},
		{"too long", `{checkpoint_id: 0, message: "` + long + `"}`, "Not sent: the message has 601 tokens and may have 500"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			task := mailed(t, `turns:
  - calls: [{name: Think, arguments: {thought: a}}]
  - calls: [{name: SendDMail, arguments: `+tt.args+`}]
  - reply: Done.
`, Options{})
			text := string(optest.Render(task.Ledger.State().Context.Chat()))
			if st := task.Ledger.State(); st.Totals.Mails != 0 || st.Jump.Pending != nil ||
				!strings.Contains(text, tt.want) {
				t.Errorf("%d D-Mails; want %q in\n%s", st.Totals.Mails, tt.want, text)
			}
		})
	}
}

// TestMailCap: a message of as many tokens as a hot block may have is sent.
func TestMailCap(t *testing.T) {
	mailed(t, `turns:
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 0, message: "`+strings.TrimSpace(strings.Repeat("word ", 499))+`"}}]
  - expect: [{on: last, contains: "[D-Mail from future self]"}]
    reply: Done.
`, Options{})
}

// TestMailRestoresFiles: with restore_files a D-Mail is a jump. The files are
// the checkpoint's, the next step continues it, and the message still stands for
// everything after.
func TestMailRestoresFiles(t *testing.T) {
	task := mailed(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: a, content: one}}]
  - calls: [{name: WriteFile, arguments: {path: a, content: two}}, {name: WriteFile, arguments: {path: b, content: new}}]
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 1, message: two does not work, restore_files: true}}]
  - expect:
      - {on: last, contains: ["two does not work", "The files went back, too", "[JUMP] You went back from step 3 to step 1. Reason: D-Mail: two does not work", "Gone again (1): b.", "Changed back (1): a."]}
      - {on: all-joined, contains: CHECKPOINT 1, lacks: ["CHECKPOINT 2", "If you can read this", "[END OF DISCARDED STEPS]"]}
    calls: [{name: ReadFile, arguments: {path: a}}]
  - expect: [{on: result, contains: "one"}]
    reply: Done.
`, Options{})
	if _, err := os.Stat(filepath.Join(task.Place.Dir, "b")); err == nil {
		t.Error("b is still there")
	}
	if st := task.Ledger.State(); st.Totals.Jumps != 1 || st.Totals.Mails != 0 || st.Steps.At(4).Parent != 1 {
		t.Errorf("%d jumps, %d D-Mails, step 4 after step %d", st.Totals.Jumps, st.Totals.Mails, st.Steps.At(4).Parent)
	}
}

// TestMailStaysHere: without restore_files the world and the current step stay,
// and the message names what differs.
func TestMailStaysHere(t *testing.T) {
	task := mailed(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: a, content: one}}]
  - calls: [{name: WriteFile, arguments: {path: a, content: two}}, {name: WriteFile, arguments: {path: b, content: new}}]
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 1, message: two works}}]
  - expect: [{on: last, contains: ["two works", "is out of date: a, b."]}]
    reply: Done.
`, Options{})
	if data, err := os.ReadFile(filepath.Join(task.Place.Dir, "a")); err != nil || string(data) != "two" {
		t.Errorf("a holds %q, %v", data, err)
	}
	if st := task.Ledger.State(); st.Steps.At(4).Parent != 3 || st.Current != 4 {
		t.Errorf("step 4 after step %d, current %d", st.Steps.At(4).Parent, st.Current)
	}
}

// TestMailAcrossBranches: a D-Mail to a step that a jump has left says that the
// directory does not hold it; one that another D-Mail had replaced keeps that one.
func TestMailAcrossBranches(t *testing.T) {
	mailed(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: left, content: x}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: r}}]
  - calls: [{name: Think, arguments: {thought: a}}]
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 1, message: to the left one}}]
  - expect: [{on: last, contains: ["to the left one", "The directory does not hold the work of steps 1: a jump had left them."]}]
    calls: [{name: Think, arguments: {thought: b}}]
  - calls: [{name: SendDMail, arguments: {checkpoint_id: 3, message: into a block}}]
  - expect: [{on: all-joined, contains: ["to the left one", "into a block"], lacks: "CHECKPOINT 5"}]
    reply: Done.
`, Options{})
}

// TestMailWithoutWorld: a step whose files could not be saved is a checkpoint
// for a message, and none for files.
func TestMailWithoutWorld(t *testing.T) {
	s := optest.Fold(t, state.Fold, optest.Parse(t, optest.Begun+`model.asked 1 {"last_seq":4}
model.replied 1 {"text":"a","finish":"stop"}
world.saved 1 {"parent":0,"error":"disk full"}
model.asked 2 {"last_seq":7}
model.replied 2 {"text":"b","finish":"stop"}
world.saved 2 {"parent":1,"commit":"c2"}
`))

	pending := func(restore bool) *state.Pending {
		return &state.Pending{JumpRequested: op.JumpRequested{To: 1, By: op.ByAgent,
			Mail: &op.Mail{Checkpoint: 1, RestoreFiles: restore}}}
	}
	s.Jump.Pending = pending(false)
	if act := state.Next(s, state.Limits{}); act.Kind != state.ActMail {
		t.Errorf("Next = %+v, want to deliver", act)
	}
	s.Jump.Pending = pending(true)
	if act := state.Next(s, state.Limits{}); act.Kind != state.ActDropJump ||
		!strings.Contains(act.Detail, "disk full") {
		t.Errorf("Next = %+v, want to drop it for the disk", act)
	}
	s.Jump.Pending.To = 2
	if act := state.Next(s, state.Limits{}); act.Kind != state.ActDropJump ||
		!strings.Contains(act.Detail, "nothing came after step 2") {
		t.Errorf("Next = %+v, want to drop it", act)
	}
}

// TestFirstOfAReply: of several jumps and D-Mails in one reply the first is
// made, and checkpoints are numbered in the order of their calls, although none
// of these calls changes a file.
func TestFirstOfAReply(t *testing.T) {
	const later = `      - {name: jump_to_step, arguments: {step_id: 0, reason: later}}
      - {name: SendDMail, arguments: {checkpoint_id: 0, message: later}}
`
	task := mailed(t, `turns:
  - calls:
      - {id: one, name: dmail, arguments: {action: checkpoint}}
      - {id: two, name: dmail, arguments: {action: checkpoint}}
      - {id: three, name: dmail, arguments: {action: checkpoint}}
  - expect:
      - {on: any, contains: "Checkpoint 0 created"}
      - {on: any, contains: "Checkpoint 1 created"}
      - {on: any, contains: "Checkpoint 2 created: it is the end of this step. checkpoint_count: 3."}
    calls: [{name: Think, arguments: {thought: x}}]
  - calls:
      - {name: jump_to_step, arguments: {step_id: 1, reason: first}}
`+later+later+`  - expect: [{on: last, contains: "[JUMP] You went back from step 3 to step 1. Reason: first"}]
    calls:
      - {name: SendDMail, arguments: {checkpoint_id: 2, message: the first of all}}
`+later+later+`  - expect: [{on: last, contains: "the first of all"}]
    reply: Done.
`, Options{})
	for number, call := range []string{"one", "two", "three"} {
		if got := task.Ledger.State().Marked[number].Call; got != call {
			t.Errorf("checkpoint %d is that of call %s, want %s", number, got, call)
		}
	}
}
