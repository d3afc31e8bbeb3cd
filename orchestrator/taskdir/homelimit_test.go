package taskdir

import (
	"math"
	"testing"
)

// TestSnapshotLimits: a limit is a number of bytes, with a unit or none.
func TestSnapshotLimits(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "none": -1, "5": 5, "2K": 2048, "500M": 500 << 20, "3G": 3 << 30, "0": -2, "-1": -2, "G": -2, "1T": -2, "x": -2, "99999999999G": -2,
		"9223372036854775807": math.MaxInt64, "9007199254740991K": 9007199254740991 << 10, "9007199254740992K": -2} {
		for _, set := range []string{"ANAMNESIS_FILE_LIMIT", "ANAMNESIS_STORE_LIMIT"} {
			file, store, err := SnapshotLimits(func(name string) string { return map[string]string{set: text}[name] })
			if (err != nil) != (want == -2) ||
				err == nil && (file+store != want || set == "ANAMNESIS_FILE_LIMIT" && store != 0) {
				t.Errorf("%s=%q: %d, %d, %v; want %d", set, text, file, store, err, want)
			}
		}
	}
}
