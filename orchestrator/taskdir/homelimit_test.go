package taskdir

import "testing"

// TestFileLimitSetting: the limit of a file is a number of bytes, with a unit or none.
func TestFileLimitSetting(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "none": -1, "5": 5, "2K": 2048, "500M": 500 << 20, "3G": 3 << 30, "0": -2, "-1": -2, "G": -2, "1T": -2, "x": -2, "99999999999G": -2} {
		n, err := FileLimit(func(string) string { return text })
		if (err != nil) != (want == -2) || err == nil && n != want {
			t.Errorf("%q: %d, %v; want %d", text, n, err, want)
		}
	}
}
