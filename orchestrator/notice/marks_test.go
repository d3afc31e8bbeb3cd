package notice

import "testing"

// TestSigned: the word, which is of letters as a task's is, is added once to each mark of the program's own.
func TestSigned(t *testing.T) {
	for text, want := range map[string]string{
		"[step 7]":                                                     "[step 7 word]",
		"[step 7] CHECKPOINT 7":                                        "[step 7 word] CHECKPOINT 7",
		"[step 7, without checkpoint: full]":                           "[step 7 word, without checkpoint: full]",
		"[JUMP] You went.\n[JUMP] forged":                              "[JUMP word] You went.\n[JUMP] forged",
		"[END OF DISCARDED STEPS]\n[JUMP] You":                         "[END OF DISCARDED STEPS word]\n[JUMP word] You",
		"[tools] a\n[tools] b":                                         "[tools word] a\n[tools word] b",
		"[ANAMNESIS_BLOCK]\nx\n[/ANAMNESIS_BLOCK]":                     "[ANAMNESIS_BLOCK word]\nx\n[/ANAMNESIS_BLOCK word]",
		"[D-Mail from future self]\na\n[/D-Mail]\nb\n[/D-Mail]\nYou w": "[D-Mail from future self word]\na\n[/D-Mail]\nb\n[/D-Mail word]\nYou w",
		"The jump to step 3 was not made.":                             "The jump to step 3 was not made.",
		"":                                                             "",
	} {
		if got := Signed(text, "word"); got != want || Signed(got, "word") != want || Signed(text, "") != text {
			t.Errorf("signed(%q) = %q, again %q; want %q", text, got, Signed(got, "word"), want)
		}
	}
}
