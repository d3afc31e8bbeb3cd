package orchestrator

import (
	"os"
	"regexp"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// TestMailWording holds what a D-Mail looks like when it arrives: these texts
// are product.
func TestMailWording(t *testing.T) {
	message := "The parser is fixed: dates end with Z.\nparse.go is written; run the tests next."
	golden(t, "notice/mail.txt", mail{
		Mail: op.Mail{Checkpoint: 2, Message: message}, to: 2, from: 5, ops: op.Range{First: 14, Last: 41}, messages: 9,
		ledger:  ledger{effects: []string{"op 20: curl -X POST https://example.test/deploy"}, delivered: []string{"op 31: The date parser is fixed."}},
		changed: []string{"parse.go", "new.go"}, later: "3-5",
	}.String())
	golden(t, "notice/mail_files.txt", mail{
		Mail: op.Mail{Checkpoint: 0, Numbered: true, Message: message, RestoreFiles: true}, to: 2, from: 5, ops: op.Range{First: 14, Last: 41}, messages: 9,
	}.String())
	golden(t, "notice/mail_branch.txt", mail{
		Mail: op.Mail{Checkpoint: 3, Message: message}, to: 3, from: 5, ops: op.Range{First: 14, Last: 41}, messages: 9,
		unknown: "there is no snapshot to compare with", left: "2-3", later: "4-5",
	}.String())
}

// TestPlainWords: a text that forbids or threatens keeps models from ever using
// what it is about again.
func TestPlainWords(t *testing.T) {
	texts := []string{SystemPrompt(), tool.MailUnsent, mail{later: "1"}.String()}
	asked, err := builtin.OptIn("SendDMail", "dmail")
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range append(builtin.Tools(nil), asked...) {
		texts = append(texts, tl.Spec().Description)
	}
	for _, name := range globAll(t, "testdata/notice/[a-v]*.txt") { // not words.txt: those are a person's
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
