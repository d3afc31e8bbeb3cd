package mail

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"anamnesis/anamnesis/note"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// box is a mailbox that takes every mail, and whose checkpoints fail with err.
type box struct {
	got op.Mail
	err error
}

func (b *box) CheckMail(m op.Mail) (*op.JumpRequested, error) {
	b.got = m
	return &op.JumpRequested{To: m.Checkpoint}, b.err
}

func (b *box) MarkCheckpoint(context.Context, string) (int, error) { return 4, b.err }

// TestTools: what the two tools ask of the mailbox, and what the model reads of it.
func TestTools(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	aboutCall := &tool.CallError{Text: "No checkpoint was created."}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		box  *box
		tool int // of Tools
		args string
		mail string // as the mailbox got it
		text string
		err  bool // an internal one
	}{
		{"sends", t.Context(), &box{}, 0, `{"checkpoint_id":2,"message":"m","restore_files":true}`, "2 false m true", tool.MailUnsent, false},
		{"refused", t.Context(), &box{err: errors.New("too long")}, 0, `{"checkpoint_id":2,"message":"m"}`, "2 false m false", "Not sent: too long.", false},
		{"outside a task", t.Context(), nil, 0, `{"checkpoint_id":2,"message":"m"}`, "", fmt.Sprintf(tool.OutsideTask, sendName), false},
		{"interrupted", ended, &box{}, 0, `{"checkpoint_id":2,"message":"m"}`, "0 false  false", "", true},
		{"not JSON", t.Context(), &box{}, 0, `{`, "0 false  false", "", true},
		{"sends to a number", t.Context(), &box{}, 1, `{"action":"send","checkpoint_id":0,"message":"m"}`, "0 true m false", tool.MailUnsent, false},
		{"to none", t.Context(), &box{}, 1, `{"action":"send","message":"m"}`, "0 false  false", "Not sent: send needs", false},
		{"nothing", t.Context(), &box{}, 1, `{"action":"send","checkpoint_id":0}`, "0 false  false", "Not sent: send needs", false},
		{"marks", t.Context(), &box{}, 1, `{"action":"checkpoint"}`, "0 false  false", tool.CheckpointCreated(4), false},
		{"marks one too many", t.Context(), &box{err: aboutCall}, 1, `{"action":"checkpoint"}`, "0 false  false", aboutCall.Text, false},
		{"cannot mark", t.Context(), &box{err: errors.New("disk full")}, 1, `{"action":"checkpoint"}`, "0 false  false", "", true},
		{"marks outside a task", t.Context(), nil, 1, `{"action":"checkpoint"}`, "", fmt.Sprintf(tool.OutsideTask, markName), false},
		{"is interrupted", ended, &box{}, 1, `{"action":"checkpoint"}`, "0 false  false", "", true},
		{"is not JSON", t.Context(), &box{}, 1, `{`, "0 false  false", "", true},
	} {
		var mailbox Mailbox
		if tt.box != nil {
			mailbox = tt.box
		}
		r, err := Tools(mailbox)[tt.tool].Call(tt.ctx, &tool.Env{Call: "c"}, []byte(tt.args))
		if (err != nil) != tt.err || !strings.HasPrefix(r.Text, tt.text) {
			t.Errorf("%s: %q, %v", tt.name, r.Text, err)
		}
		if sent := r.Text == tool.MailUnsent; (r.Jump != nil) != sent ||
			sent && (r.Jump.By != op.ByAgent || r.Jump.Call != "c") {
			t.Errorf("%s: %+v", tt.name, r.Jump)
		}
		if tt.box != nil {
			if m := tt.box.got; fmt.Sprint(m.Checkpoint, " ", m.Numbered, " ", m.Message, " ", m.RestoreFiles) != tt.mail {
				t.Errorf("%s: %+v, want %s", tt.name, m, tt.mail)
			}
		}
	}
}

// TestLongMail: a message may have as many tokens as a block.
func TestLongMail(t *testing.T) {
	p := threeSteps(t)
	most := note.BlockCap(8000)
	text := strings.Repeat(" word", most)
	if n := p.Journal.Count(text); n != most {
		t.Fatalf("%d tokens, want %d", n, most)
	}
	if _, err := New(p, nil).CheckMail(op.Mail{Checkpoint: 1, Message: text}); err != nil {
		t.Error(err)
	}
	if _, err := New(p, nil).CheckMail(op.Mail{Checkpoint: 1, Message: text + " word"}); err == nil ||
		!strings.Contains(err.Error(), "in fewer words") {
		t.Errorf("a token more: %v", err)
	}
}
