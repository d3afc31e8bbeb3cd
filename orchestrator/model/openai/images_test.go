package openai

import (
	"encoding/json"
	"reflect"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

func TestSees(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt-5": true, "openai/gpt-4o-mini": true, "Qwen2.5-VL-72B": true, "anthropic/claude-sonnet-4.5": true, "llava:13b": true,
		"gpt-3.5-turbo": false, "o3-mini": false, "deepseek-chat": false, "qwen2.5-coder": false, "test-model": false,
	} {
		if got := (&Client{o: Options{Model: name}}).sees(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !(&Client{o: Options{Model: "x", Images: ImagesSend}}).sees() || (&Client{o: Options{Model: "gpt-5", Images: ImagesNever}}).sees() {
		t.Error("what was set is not followed")
	}
}

// The images of results follow all results of the reply, before the words that
// stand there, and are left out for a model that cannot look at them.
func TestImages(t *testing.T) {
	picture := []op.Part{{Kind: op.PartImage, MIME: "image/png", Base64: []byte("abc")}, {Kind: op.PartAudio, MIME: "audio/wav", Base64: []byte("x")}}
	chat := func(after ...model.Message) model.Request {
		return model.Request{Messages: append([]model.Message{
			{Role: model.RoleUser, Text: "Look."},
			{Role: model.RoleAssistant, Calls: []op.Call{{ID: "a", Name: "shot", Args: "{}"}, {ID: "b", Name: "Think", Args: "{}"}}},
			{Role: model.RoleTool, CallID: "a", Name: "shot", Text: "[image 1]", Parts: picture},
			{Role: model.RoleTool, CallID: "b", Name: "Think", Text: "Noted."},
		}, after...)}
	}
	label := `{"type":"text","text":"[image 1 of 2 in the result of shot, call a]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}`
	for name, tc := range map[string]struct {
		images Images
		after  []model.Message
		want   string // the messages after the results
	}{
		"last":      {ImagesSend, nil, `[{"role":"user","content":[` + label + `]}]`},
		"words":     {ImagesSend, []model.Message{{Role: model.RoleUser, Text: "And?"}}, `[{"role":"user","content":[` + label + `,{"type":"text","text":"And?"}]}]`},
		"assistant": {ImagesSend, []model.Message{{Role: model.RoleAssistant, Text: "Ah."}}, `[{"role":"user","content":[` + label + `]},{"role":"assistant","content":"Ah."}]`},
		"never":     {ImagesNever, nil, `[]`},
	} {
		e := serve(t, sse(content("ok"), finish("stop"), doneEvent))
		if _, err := ask(t, e.client(t, func(o *Options) { o.Images = tc.images }), chat(tc.after...)); err != nil {
			t.Fatal(err)
		}
		var want []any
		if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		if got := e.request(t)["messages"].([]any)[4:]; !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}
