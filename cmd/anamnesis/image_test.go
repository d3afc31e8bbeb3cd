//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// strictServer speaks OpenAI's chat completions and keeps Claude's documented rules of images: a
// request with one that cannot be decoded, or is too large, is refused. turns are the deltas of its
// replies. blind refuses every image.
type strictServer struct {
	mu       sync.Mutex
	requests []string
	turns    []string
	blind    bool
}

var dataURL = regexp.MustCompile(`"data:(image/[a-z]+);base64,([^"]*)"`)

func (s *strictServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range dataURL.FindAllStringSubmatch(string(body), -1) {
		data, err := base64.StdEncoding.DecodeString(m[2])
		img, format, bad := image.Decode(bytes.NewReader(data))
		switch {
		case s.blind:
			http.Error(w,
				`{"error":{"message":"No endpoints found that support image input","type":"invalid_request_error"}}`,
				http.StatusNotFound)
			return
		case err != nil || bad != nil || "image/"+format != m[1]:
			http.Error(w, `{"error":{"message":"Could not process image","type":"invalid_request_error"}}`,
				http.StatusBadRequest)
			return
		case len(m[2]) > 5<<20 || max(img.Bounds().Dx(), img.Bounds().Dy()) > 2_000:
			http.Error(w, `{"error":{"message":"image exceeds 5 MB maximum","type":"invalid_request_error"}}`,
				http.StatusBadRequest)
			return
		}
	}
	s.requests = append(s.requests, string(body))
	delta, finish := s.turns[min(len(s.requests), len(s.turns))-1], "stop"
	if strings.Contains(delta, "tool_calls") {
		finish = "tool_calls"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}

// images lists the data URLs of the last request, and returns its text.
func (s *strictServer) images() (urls []string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = s.requests[len(s.requests)-1]
	return dataURL.FindAllString(text, -1), text
}

func reads(paths ...string) string {
	var calls []string
	for i, p := range paths {
		args, _ := json.Marshal(map[string]string{"path": p})
		calls = append(calls, fmt.Sprintf(
			`{"index":%d,"id":"c%d","type":"function","function":{"name":"ReadFile","arguments":%q}}`, i, i, args))
	}
	return `{"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func writePNG(t *testing.T, path string, w, h int) {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w {
		img.Set(i, i%h, color.White)
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestImageStory: images that ReadFile opens reach a provider that refuses faulty ones, are the
// same bytes after a resume, and become one line for a model without sight.
func TestImageStory(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	writePNG(t, filepath.Join(dir, "logo.png"), 60, 40)
	writePNG(t, filepath.Join(dir, "wide.png"), 5_000, 100)
	data, err := os.ReadFile(filepath.Join(dir, "logo.png"))
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"half.png": data[:len(data)/2], "text.png": []byte("words\n"), "empty.png": nil} {
		if err := os.WriteFile(filepath.Join(dir, name), bad, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := reads("logo.png", "wide.png", "half.png", "text.png", "empty.png")
	serve := func(s *strictServer) string {
		srv := httptest.NewServer(s)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	run := func(url string, args ...string) {
		t.Helper()
		out, err := program(t.Context(),
			[]string{"ANAMNESIS_HOME=" + home, "OPENAI_API_KEY=test", "OPENAI_BASE_URL=" + url + "/v1"},
			append(args, "--approval", "auto")...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	sees := &strictServer{turns: []string{all, `{"content":"A logo."}`}}
	url := serve(sees)
	run(url, "run", "--dir", dir, "--model", "gpt-4o", "--task", "look", "What is on them?")
	urls, text := sees.images()
	logo := slices.IndexFunc(urls, func(u string) bool { // the two reads run at the same time
		return strings.Contains(u, base64.StdEncoding.EncodeToString(data))
	})
	if len(urls) != 2 || logo < 0 {
		t.Fatalf("%d images were sent: %.300s", len(urls), urls)
	}
	for _, want := range []string{
		"[image 1: logo.png: image/png, 60x40 pixels, ", "[image 1: wide.png: image/png, 2000x40 pixels, ", "made from png of 5000x100 pixels]",
		"ReadFile: half.png: is an image that cannot be shown: it is damaged: ", `1\twords\n[lines 1-1;`, "[the file is empty;",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the model was not sent %s in %s", want, text)
		}
	}
	if err := os.Remove(filepath.Join(dir, "logo.png")); err != nil {
		t.Fatal(err)
	}
	run(url, "resume", "look", "And now?")
	if same, text := sees.images(); len(same) != 2 || same[0] != urls[0] || same[1] != urls[1] ||
		!strings.Contains(text, "And now?") {
		t.Errorf("a resume sent %d other images", len(same))
	}
	writePNG(t, filepath.Join(dir, "logo.png"), 60, 40)
	run(url, "resume", "look", "And on @logo.png and @half.png?")
	if three, text := sees.images(); len(three) != 3 || three[2] != urls[logo] ||
		!strings.Contains(text, filepath.Join(dir, "logo.png")+": image/png, 60x40 pixels, ") ||
		!strings.Contains(text, "half.png: not attached: it is damaged: ") {
		t.Errorf("with words that name an image, %d were sent: %s", len(three), text)
	}
	// by its name, by the endpoint's refusal
	for model, refuses := range map[string]bool{"no-eyes": false, "gpt-5": true} {
		blind := &strictServer{turns: []string{reads("wide.png"), `{"content":"I cannot see it."}`}, blind: refuses}
		run(serve(blind), "run", "--dir", dir, "--model", model, "--task", model, "What is on it?")
		if urls, text := blind.images(); len(urls) != 0 || !strings.Contains(text, `2000x40 pixels, `) ||
			!strings.Contains(text,
				"[This model takes no images, or its endpoint refused them: only the text above is known.]") {
			t.Errorf("%s was sent %d images and %s", model, len(urls), text)
		}
	}
}
