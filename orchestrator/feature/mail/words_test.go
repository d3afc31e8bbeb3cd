package mail

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/optest"
)

// TestMailWording holds what a D-Mail looks like when it arrives: these texts
// are product.
func TestMailWording(t *testing.T) {
	message := "The parser is fixed: dates end with Z.\nparse.go is written; run the tests next."
	optest.Golden(t, "mail.txt", Message{
		Mail: op.Mail{Checkpoint: 2, Message: message}, To: 2, From: 5, Ops: op.Range{First: 14, Last: 41}, Messages: 9,
		Ledger:  notice.Ledger{Effects: []string{"op 20: curl -X POST https://example.test/deploy"}, Delivered: []string{"op 31: The date parser is fixed."}},
		Changed: []string{"parse.go", "new.go"}, Later: "3-5",
	}.String())
	optest.Golden(t, "mail_files.txt", Message{
		Mail: op.Mail{Checkpoint: 0, Numbered: true, Message: message, RestoreFiles: true}, To: 2, From: 5,
		Ops: op.Range{First: 14, Last: 41}, Messages: 9,
	}.String())
	optest.Golden(t, "mail_branch.txt", Message{
		Mail: op.Mail{Checkpoint: 3, Message: message}, To: 3, From: 5, Ops: op.Range{First: 14, Last: 41}, Messages: 9,
		Unknown: "there is no snapshot to compare with", Left: "2-3", Later: "4-5",
	}.String())
}

// TestMailUnknownOutcome: a D-Mail whose step a crash cut through takes the
// result that says so out of the context, so it says it itself.
func TestMailUnknownOutcome(t *testing.T) {
	m := Message{Mail: op.Mail{Message: "x"}, Ledger: notice.LedgerOf(t.TempDir(), []op.Op{
		{Seq: 5, Body: &op.ToolCalled{Call: "a", Name: "Bash", Args: `{"command":"make install"}`}},
		{Seq: 6, Body: &op.ToolCalled{Call: "b", Name: "Bash", Args: `{"command":"make"}`}},
		{Seq: 7, Body: &op.ToolReturned{Call: "b", Name: "Bash"}},
		{Seq: 8, Body: &op.ToolReturned{Call: "a", Name: "Bash", Unknown: true}},
	})}
	for _, m.RestoreFiles = range []bool{false, true} {
		want := "Of unknown outcome, because the program stopped while they ran; look before you repeat one:\n- op 8: Bash(make install)"
		if text := m.String(); !strings.Contains(text, want) || strings.Contains(text, "op 7") {
			t.Error(text)
		}
	}
}
