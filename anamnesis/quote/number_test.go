package quote

import "testing"

func TestNumber(t *testing.T) {
	for want, got := range map[string]string{
		"1 card": Number(1, "card"), "0 cards": Number(0, "card"), "2 processes": Number(2, "process"), "3 new directories": Number(3, "new directory"),
		"1 directory": Number(1, "directory"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
