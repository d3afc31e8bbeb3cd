package openai

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/modeltest"
)

// roundTrip answers in place of the network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzReply feeds any bytes as a response's body, in any cutting: there is
// either a reply with a finish reason and usable calls, or a fault.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		content("hi") + "\n\n" + finish("stop") + "\n\n" + usageEvent + "\n\n" + doneEvent + "\n\n",
		content("hi") + "\n\n", "<html>", `{"error":"x"}`,
		`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`,
		"data: {\"error\":null}\n\n", ": c\n\ndata: [DONE]\n\n", "data: {\ndata: }\n\n", "data: [1]\n\n", "",
		delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"b","arguments":"{"}}]}`) + "\n" +
			finish("tool_calls"),
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, slow bool) {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			var b io.Reader = bytes.NewReader(body)
			if slow {
				b = iotest.OneByteReader(b)
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(b), Request: r}, nil
		})}
		c, err := New(Options{Model: "m", Key: testKey, HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		var streamed strings.Builder
		reply, err := c.Ask(t.Context(), modeltest.Question(), func(d model.Delta) { streamed.WriteString(d.Text) })
		if err != nil {
			fault := model.AsFault(err)
			if fault.Kind == "" || fault.Err == nil || fault.Partial != streamed.String() {
				t.Errorf("fault %+v after %q", fault, streamed.String())
			}
			return
		}
		if reply.Finish == "" || reply.Text != streamed.String() {
			t.Errorf("reply %+v after %q", reply, streamed.String())
		}
		ids := make(map[string]bool)
		for _, call := range reply.Calls {
			if call.ID == "" || ids[call.ID] || call.Args == "" {
				t.Errorf("call %+v", call)
			}
			ids[call.ID] = true
		}
	})
}

// FuzzProblem reads any error body without failing, into one short line.
func FuzzProblem(f *testing.F) {
	for _, s := range []string{`{"error":{"message":"x","code":429}}`, `{"error":"x"}`, `[{"error":{}}]`, `{"detail":[1]}`, "<p>", ""} {
		f.Add([]byte(s), 500)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		p := parseProblem(body)
		p.status = status
		text := p.fault(nil).Error()
		if len(text) > 2*excerptLength || strings.ContainsAny(text, "\n\r\x1b") {
			t.Errorf("error %q", text)
		}
	})
}
