package quote

import "testing"

// TestBreakMarks: no quoted text holds a mark of a block, and what is no mark stays.
func TestBreakMarks(t *testing.T) {
	for text, want := range map[string]string{
		BlockBegin:                               "(ANAMNESIS_BLOCK)",
		BlockEnd:                                 "(/ANAMNESIS_BLOCK)",
		"[anamnesis_Block]":                      "(anamnesis_Block)",
		"a[ANAMNESIS_BLOCK]b[/ANAMNESIS_BLOCK]c": "a(ANAMNESIS_BLOCK)b(/ANAMNESIS_BLOCK)c",
		"[[ANAMNESIS_BLOCK]]":                    "[(ANAMNESIS_BLOCK)]",
		"[ANAMNESIS\x00_BLOCK]":                  "(ANAMNESIS_BLOCK)",
		"ANAMNESIS_BLOCK]":                       "ANAMNESIS_BLOCK]",
		"/ANAMNESIS_BLOCK]":                      "/ANAMNESIS_BLOCK]",
		"x/ANAMNESIS_BLOCK]":                     "x/ANAMNESIS_BLOCK]",
		"[//ANAMNESIS_BLOCK]":                    "[//ANAMNESIS_BLOCK]",
		"[x/ANAMNESIS_BLOCK]":                    "[x/ANAMNESIS_BLOCK]",
		"[ANAMNESIS_BLOCK ]":                     "[ANAMNESIS_BLOCK ]",
		"[ANAMNESIS_BLOCK":                       "[ANAMNESIS_BLOCK",
		"x]ANAMNESIS_BLOCK][/ANAMNESIS_BLOCK]":   "x]ANAMNESIS_BLOCK](/ANAMNESIS_BLOCK)",
	} {
		got := Squash(text)
		if got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if again := Squash(got); again != got {
			t.Errorf("%q became %q when it was quoted again", got, again)
		}
	}
}
