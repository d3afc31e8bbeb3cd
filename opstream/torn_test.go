package opstream

import (
	"strings"
	"testing"

	"anamnesis/opstream/internal/segments"
)

// TestTornName: the name of a file of torn bytes says where they stood, and no other name does.
func TestTornName(t *testing.T) {
	name := tornName(7, 120, []byte("torn"))
	if got, ok := parseTornName(name); !ok || got != (Recovery{File: segments.Name(7), Offset: 120, SavedAs: name}) {
		t.Errorf("%s is read as %+v, %v", name, got, ok)
	}
	if tornName(7, 120, []byte("torn")) != name || tornName(7, 120, []byte("else")) == name {
		t.Error("the name does not follow from the bytes")
	}
	seg := strings.Repeat("0", segments.Digits-1) + "7"
	for _, bad := range []string{
		"", seg + "-120-ab" + tornSuffix, tornPrefix + seg + "-120-ab", tornPrefix + seg + "-120" + tornSuffix,
		tornPrefix + seg + "-120-ab-c" + tornSuffix, tornPrefix + seg + "--120-ab" + tornSuffix,
		tornPrefix + seg + "-x-ab" + tornSuffix,
		tornPrefix + seg + "-99999999999999999999-ab" + tornSuffix, tornPrefix + "7-120-ab" + tornSuffix,
		tornPrefix + strings.Repeat("0", segments.Digits) + "-120-ab" + tornSuffix,
	} {
		if got, ok := parseTornName(bad); ok || got != (Recovery{}) {
			t.Errorf("%q is read as %+v, %v", bad, got, ok)
		}
	}
}
