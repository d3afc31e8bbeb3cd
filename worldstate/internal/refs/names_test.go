package refs

import (
	"strings"
	"testing"
)

// TestValidPart: a name is one that git accepts as a part of a ref.
func TestValidPart(t *testing.T) {
	for name, want := range map[string]bool{
		"azAZ09.-_x": true, "a": true, "-": true, "a.lock.b": true, "lock": true, strings.Repeat("x", 200): true,
		"": false, strings.Repeat("x", 201): false, ".a": false, "a.": false, "a.lock": false, "a..b": false, ".": false,
		"a/b": false, "a b": false, "a@b": false, "a[b": false, "a`b": false, "a{b": false, "a:b": false, "ä": false, "a\x00": false,
	} {
		if got := ValidPart(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// TestStep: the name of a step's ref and back; refs of others name no step.
func TestStep(t *testing.T) {
	if got := OfStep("t@1"); got != TaskPrefix+"t/1" {
		t.Errorf("the ref is %s", got)
	}
	for ref, want := range map[string]string{
		TaskPrefix + "t/1": "t@1", TaskPrefix + "t": "t", WorldPrefix + "w": "", Latest: "", "refs/tags/t/1": "",
	} {
		if got := Step(ref); got != want || IsStep(ref) != (want != "") ||
			IsOurs(ref) == strings.HasPrefix(ref, "refs/tags") {
			t.Errorf("%s: step %q, a step %v, ours %v", ref, got, IsStep(ref), IsOurs(ref))
		}
	}
}
