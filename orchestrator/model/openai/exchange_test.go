package openai

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestPassing: a server that cannot be reached may come back; one that cannot be trusted is another one.
func TestPassing(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{errors.New("connection refused"), true},
		{&tls.CertificateVerificationError{Err: errors.New("expired")}, false},
		{tls.RecordHeaderError{Msg: "no TLS"}, false},
		{http.ErrSchemeMismatch, false},
	} {
		for _, err := range []error{tt.err, &url.Error{Op: "Post", URL: "http://host", Err: fmt.Errorf("ask: %w", tt.err)}} {
			if got := passing(err); got != tt.want {
				t.Errorf("%v: %v", err, got)
			}
		}
	}
}

// TestNetworkError: an error names the server, but not what else an address may hold.
func TestNetworkError(t *testing.T) {
	cause := errors.New("connection refused")
	req := &http.Request{URL: &url.URL{Scheme: "https", Host: "host:1", Path: "/v1", RawQuery: "token=secret"}}
	for _, err := range []error{cause, &url.Error{Op: "Post", URL: "http://user:secret@proxy", Err: cause}} {
		got := networkError(req, err)
		if !errors.Is(got, cause) || !strings.Contains(got.Error(), "cannot reach host:1") ||
			strings.Contains(got.Error(), "secret") {
			t.Errorf("%v", got)
		}
	}
}
