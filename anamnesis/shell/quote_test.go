package shell

import "testing"

// TestQuoteIfNeeded: a command in a message can be pasted into a shell; plain words stay as they
// are.
func TestQuoteIfNeeded(t *testing.T) {
	for word, want := range map[string]string{
		"/az/AZ/09._-+:@%": "/az/AZ/09._-+:@%", "a b": "'a b'", "$x": "'$x'", "ä": "'ä'", "": "''",
	} {
		if got := QuoteIfNeeded(word); got != want {
			t.Errorf("QuoteIfNeeded(%q) = %s, want %s", word, got, want)
		}
	}
}
