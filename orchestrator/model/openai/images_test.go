package openai

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
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
	if !(&Client{o: Options{Model: "x", Images: ImagesSend}}).sees() ||
		(&Client{o: Options{Model: "gpt-5", Images: ImagesNever}}).sees() {
		t.Error("what was set is not followed")
	}
}

// The images of results follow all results of the reply, before the words that
// stand there, and are left out for a model that cannot look at them.
func TestImages(t *testing.T) {
	picture := []op.Part{
		{Kind: op.PartImage, MIME: "image/png", Base64: []byte("abc")},
		{Kind: op.PartAudio, MIME: "audio/wav", Base64: []byte("x")},
	}
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
		"the user's": {ImagesSend, []model.Message{{Role: model.RoleUser, Text: "[image 1: a.png]", Parts: picture[:1]}}, `[{"role":"user","content":[` + label +
			`,{"type":"text","text":"[image 1 of 1 from the user]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}},{"type":"text","text":"[image 1: a.png]"}]}]`},
	} {
		e := serve(t, sse(content("ok"), finish("stop"), doneEvent))
		if _, err := ask(t, e.client(t, func(o *Options) { o.Images = tc.images }), chat(tc.after...)); err != nil {
			t.Fatal(err)
		}
		var want []any
		if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		messages := e.request(t)["messages"].([]any)
		if text := messages[2].(map[string]any)["content"].(string); strings.Contains(text, "takes no images") != (tc.images == ImagesNever) {
			t.Errorf("%s: the result is %q", name, text)
		}
		if got := messages[4:]; !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}

// A refusal of an image does not end the task: the images are left out from then on.
func TestImageRefused(t *testing.T) {
	for _, says := range []string{
		"messages.2.content.1.image.source.base64: image exceeds 5 MB maximum: 6032204 bytes > 5242880 bytes", "Could not process image",
		"You uploaded an unsupported image. Please make sure your image is valid.", "Invalid base64 image_url.", "The image data you provided does not represent a valid image.",
	} {
		c := &Client{o: Options{Model: "gpt-4o"}}
		fault := &model.Fault{Kind: model.FaultHTTP, Status: 400, Err: errors.New(says)}
		if name := c.learn(fault, model.Request{}, &written{}); name != op.RepairHistory+":no images" || c.sees() {
			t.Errorf("%s: learned %q, still sends images: %v", says, name, c.sees())
		}
	}
}
