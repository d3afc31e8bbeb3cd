package projection

import (
	"testing"

	"anamnesis/opstream/op"
)

func TestImageTokens(t *testing.T) {
	for _, tc := range []struct{ w, h, want int }{{280, 280, 100}, {281, 280, 110}, {1, 1, 1}, {0, 0, 1_000}} {
		if got := imageTokens(tc.w, tc.h); got != tc.want {
			t.Errorf("%dx%d: %d tokens, want %d", tc.w, tc.h, got, tc.want)
		}
	}
	part := op.Part{Kind: op.PartImage, Width: 280, Height: 28}
	count := func(text string) int { return len(text) }
	if n := CountBody(&op.UserSaid{Text: "abc", Parts: []op.Part{part, {Kind: op.PartBlob}}}, count); n != 13 {
		t.Errorf("a user's words with an image: %d tokens", n)
	}
	if n := CountBody(&op.ToolReturned{Text: "abc", Parts: []op.Part{part}}, count); n != 13 {
		t.Errorf("a result with an image: %d tokens", n)
	}
}
