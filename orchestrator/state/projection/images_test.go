package projection

import (
	"testing"

	"anamnesis/opstream/op"
)

// The examples are those of the pages that imageTokens names.
func TestImageTokens(t *testing.T) {
	for _, tc := range []struct {
		model      string
		w, h, want int
	}{
		{"claude-sonnet-4-5", 1_000, 1_000, 1_334}, {"anthropic/claude-opus-4", 200, 200, 54}, {"claude-3-haiku", 1_568, 1_568, 1_600}, {"claude-3-haiku", 2_000, 500, 820},
		{"gpt-4o", 1_024, 1_024, 765}, {"gpt-4o", 2_000, 4_000, 1_105}, {"gpt-4.1", 512, 512, 255}, {"gpt-4o-mini", 512, 512, 8_500},
		{"gpt-5", 1_024, 1_024, 630}, {"o3", 1_024, 1_024, 675}, {"gpt-4.1-mini", 1_024, 1_024, 1_659}, {"o4-mini", 2_000, 2_000, 2_642},
		{"gemini-2.5-pro", 384, 384, 258}, {"google/gemini-2.5-flash", 960, 540, 516}, {"qwen2.5-vl-72b", 280, 280, 100}, {"unknown", 0, 0, 1_000},
	} {
		if got := imageTokens(tc.model, tc.w, tc.h); got != tc.want {
			t.Errorf("%s, %dx%d: %d tokens, want %d", tc.model, tc.w, tc.h, got, tc.want)
		}
	}
	part := op.Part{Kind: op.PartImage, Width: 280, Height: 28}
	count := func(text string) int { return len(text) }
	if n := CountBody(&op.UserSaid{Text: "abc", Parts: []op.Part{part, {Kind: op.PartBlob}}}, "", count); n != 13 {
		t.Errorf("a user's words with an image: %d tokens", n)
	}
	if n := CountBody(&op.ToolReturned{Text: "abc", Parts: []op.Part{part}}, "", count); n != 13 {
		t.Errorf("a result with an image: %d tokens", n)
	}
}
