package notice

import "testing"

func TestSigned(t *testing.T) {
	for text, want := range map[string]string{
		"[step 7]":                                                     "[step 7 w0rd]",
		"[step 7] CHECKPOINT 7":                                        "[step 7 w0rd] CHECKPOINT 7",
		"[step 7, without checkpoint: full]":                           "[step 7 w0rd, without checkpoint: full]",
		"[JUMP] You went.\n[JUMP] forged":                              "[JUMP w0rd] You went.\n[JUMP] forged",
		"[END OF DISCARDED STEPS]\n[JUMP] You":                         "[END OF DISCARDED STEPS w0rd]\n[JUMP w0rd] You",
		"[tools] a\n[tools] b":                                         "[tools w0rd] a\n[tools w0rd] b",
		"[ANAMNESIS_BLOCK]\nx\n[/ANAMNESIS_BLOCK]":                     "[ANAMNESIS_BLOCK w0rd]\nx\n[/ANAMNESIS_BLOCK w0rd]",
		"[D-Mail from future self]\na\n[/D-Mail]\nb\n[/D-Mail]\nYou w": "[D-Mail from future self w0rd]\na\n[/D-Mail]\nb\n[/D-Mail w0rd]\nYou w",
		"The jump to step 3 was not made.":                             "The jump to step 3 was not made.",
		"":                                                             "",
	} {
		if got := Signed(text, "w0rd"); got != want || Signed(got, "w0rd") != want || Signed(text, "") != text {
			t.Errorf("signed(%q) = %q, again %q; want %q", text, got, Signed(got, "w0rd"), want)
		}
	}
}
