package openai

import (
	"errors"
	"testing"

	"anamnesis/orchestrator/model"
)

// TestToolless: a model that calls no tools is told from a request that is wrong, in the words of servers.
func TestToolless(t *testing.T) {
	for says, want := range map[string]bool{
		"registry.ollama.ai/library/x:latest does not support tools":                              true,
		"No endpoints found that support tool use. To learn more about provider routing, visit …": true,
		"This model does not support function calling":                                            true,
		"tools[3].function.parameters: array schema missing items":                                false,
		"this model does not support image input":                                                 false,
	} {
		f := problem{status: 400, message: says}.fault(nil)
		if got := f.Kind == model.FaultRefused && errors.Is(f.Err, model.ErrNoTools); got != want {
			t.Errorf("%s: %v, want %v", says, f, want)
		}
	}
}
