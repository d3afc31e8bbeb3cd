package mcp

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool"
)

// given makes a tool's result of contents.
func given(r *sdk.CallToolResult, secrets ...redact.Secret) tool.Result {
	env := &tool.Env{Redactor: redact.New([]byte("a key for tests, of some length"), secrets)}
	return result(r, env.Redaction())
}

func contents(c ...sdk.Content) *sdk.CallToolResult { return &sdk.CallToolResult{Content: c} }

func embedded(r *sdk.ResourceContents) *sdk.CallToolResult {
	return contents(&sdk.EmbeddedResource{Resource: r})
}

// pixel is a valid PNG.
func pixel(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every kind of content becomes the part that models and people know, whatever
// the server calls its bytes.
func TestContentKinds(t *testing.T) {
	t.Parallel()
	png := pixel(t)
	size := fmt.Sprintf("1x1 pixels, %d bytes", len(png))
	for name, tc := range map[string]struct {
		in   *sdk.CallToolResult
		kind op.PartKind
		mime string
		text string
	}{
		"an image called text":   {contents(&sdk.ImageContent{MIMEType: "text/plain", Data: png}), op.PartImage, "image/png", "[image 1: image/png, " + size + "]"},
		"an image of no type":    {contents(&sdk.ImageContent{MIMEType: ";", Data: []byte("?")}), op.PartBlob, "application/octet-stream", "[blob 1: application/octet-stream, 1 bytes; no PNG, JPEG, WebP or GIF]"},
		"a damaged image":        {contents(&sdk.ImageContent{MIMEType: "image/png", Data: png[:20]}), "", "", "[image: image/png, 20 bytes; not kept: it is damaged: unexpected EOF]"},
		"an empty image":         {contents(&sdk.ImageContent{MIMEType: "image/png", Data: []byte{}}), "", "", "[image: image/png, 0 bytes; not kept: it is empty]"},
		"an image in a resource": {embedded(&sdk.ResourceContents{URI: "f://i", MIMEType: "image/png", Blob: png}), op.PartImage, "image/png", "[image 1: f://i, image/png, " + size + "]"},
		"a sound in a resource":  {embedded(&sdk.ResourceContents{URI: "f://s", MIMEType: "audio/wav", Blob: []byte("x")}), op.PartAudio, "audio/wav", "[audio 1: audio/wav, f://s, 1 bytes]"},
		"a file":                 {embedded(&sdk.ResourceContents{URI: "f://z", MIMEType: "application/zip; q=1", Blob: []byte("PK")}), op.PartBlob, "application/zip", "[blob 1: application/zip, f://z, 2 bytes]"},
		"an empty file":          {embedded(&sdk.ResourceContents{URI: "f://e", MIMEType: "application/zip", Blob: []byte{}}), "", "", "[blob: application/zip, f://e, 0 bytes]"},
		"no resource":            {embedded(nil), "", "", "[a resource without content]"},
		"a name that hides":      {contents(&sdk.ResourceLink{URI: "f://\u202e", Name: "a\nb"}), "", "", `[resource link: a b, f://\u{202e}]`},
		"a result of fields":     {&sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}}, "", "", `{"n":1}`},
		"nothing":                {contents(), "", "", "[no output]"},
		"an error":               {&sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no"}}}, "", "", "no"},
	} {
		res := given(tc.in)
		if res.Text != tc.text || res.IsError != tc.in.IsError || !res.Network {
			t.Errorf("%s: %+v, want %s", name, res, tc.text)
		}
		if n := len(res.Parts); tc.kind == "" && n != 0 ||
			tc.kind != "" && (n != 1 || res.Parts[0].Kind != tc.kind || res.Parts[0].MIME != tc.mime) {
			t.Errorf("%s: parts %+v, want one %s %s", name, res.Parts, tc.kind, tc.mime)
		}
	}
}

// The limits of a result are those of the manual, counted in characters, and
// what they leave out is said.
func TestContentLimits(t *testing.T) {
	t.Parallel()
	text := func(n int) *sdk.CallToolResult {
		return contents(&sdk.TextContent{Text: strings.Repeat("é", n)})
	}
	if res := given(text(MaxResultRunes)); res.Cut != 0 || utf8.RuneCountInString(res.Text) != MaxResultRunes {
		t.Errorf("%d characters: %d left, %d bytes cut", MaxResultRunes, utf8.RuneCountInString(res.Text), res.Cut)
	}
	if res := given(text(MaxResultRunes + 1)); res.Cut != 2 || strings.Count(res.Text, "é") != MaxResultRunes ||
		!strings.Contains(res.Text, "[… 2 bytes of the result cut here …]") {
		t.Errorf("one more: %d left, %d bytes cut", strings.Count(res.Text, "é"), res.Cut)
	}
	sound := func(n int) sdk.Content {
		return &sdk.AudioContent{MIMEType: "audio/wav", Data: bytes.Repeat([]byte("x"), n)}
	}
	res := given(contents(sound(MaxPartBytes), sound(MaxPartBytes+1)))
	if len(res.Parts) != 1 || !strings.Contains(res.Text, "5242881 bytes; not kept, at most 5242880 are]") {
		t.Errorf("a large part: %d parts, %s", len(res.Parts), res.Text)
	}
	var many []sdk.Content
	for range MaxParts + 1 {
		many = append(many, sound(1))
	}
	if res = given(contents(many...)); len(res.Parts) != MaxParts ||
		!strings.HasSuffix(res.Text, "not kept, at most 8 are in one result]") {
		t.Errorf("many parts: %d, %s", len(res.Parts), res.Text)
	}
}

// Secrets are replaced in texts and in files that are texts, and before
// anything is cut: a half of one would not be recognised.
func TestContentSecrets(t *testing.T) {
	t.Parallel()
	const value = "correct-horse-battery-staple"
	secret := redact.Secret{Kind: "TOKEN", Value: value}
	// The cut goes through the secret.
	long := strings.Repeat("x", MaxResultRunes/2-10) + value + strings.Repeat("y", MaxResultRunes)
	for name, in := range map[string]*sdk.CallToolResult{
		"a text":      contents(&sdk.TextContent{Text: "it is " + value}),
		"a long text": contents(&sdk.TextContent{Text: long}),
		"a file":      embedded(&sdk.ResourceContents{URI: "f://t", MIMEType: "application/x-env", Blob: []byte("KEY=" + value)}),
		"an old file": embedded(&sdk.ResourceContents{URI: "f://t", MIMEType: "Text/plain", Blob: []byte("\xff " + value)}),
	} {
		res := given(in, secret)
		all := res.Text
		for _, p := range res.Parts {
			all += string(p.Base64)
		}
		if strings.Contains(all, value[:8]) || len(res.Secrets) != 1 {
			t.Errorf("%s: %d secrets found; it is there still: %v", name, len(res.Secrets),
				strings.Contains(all, value[:8]))
		}
	}
}

// TestManual checks that the guide states the limits of the code.
func TestManual(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/guides/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(data)), " ") // whatever the wrapping
	for _, want := range []string{
		fmt.Sprintf("| `startTimeoutSeconds` | %.0f if not given |", DefaultStartTimeout.Seconds()),
		fmt.Sprintf("| `callTimeoutSeconds` | %.0f if not given; progress restarts it, up to %.0f minutes |",
			DefaultCallTimeout.Seconds(), maxCallTime.Minutes()),
		fmt.Sprintf("`--tools-wait` (%.0f s)", DefaultFirstWait.Seconds()),
		fmt.Sprintf("at most %d,%03d characters, head and tail; at most %d images, sounds and files of at most %d MiB each", MaxResultRunes/1000, MaxResultRunes%1000, MaxParts, MaxPartBytes>>20),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/guides/mcp.md does not say: %s", want)
		}
	}
	if (Server{}).startTimeout() != DefaultStartTimeout || (Server{}).callTimeout() != DefaultCallTimeout {
		t.Error("a server that says nothing of it has other times")
	}
}
