package mcp

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/tool"
)

// sharedPort returns a listener and a second one on its port that refuses until it
// is told to listen: the port is nobody else's in between.
func sharedPort(t *testing.T) (first net.Listener, again func() net.Listener) {
	t.Helper()
	bind := func(port int) (fd, bound int) {
		syscall.ForkLock.RLock() // a child of a parallel test that had the socket would keep it open
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.CloseOnExec(fd)
		}
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		at, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		return fd, at.(*unix.SockaddrInet4).Port
	}
	listen := func(fd int) net.Listener {
		if err := unix.Listen(fd, 16); err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "listener")
		defer f.Close()
		l, err := net.FileListener(f)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	one, port := bind(0)
	two, _ := bind(port)
	return listen(one), func() net.Listener { return listen(two) }
}

// closeFully closes l and returns when its port refuses connections. A child that a
// parallel test has forked, and that has not reached its exec, holds a copy of the
// socket: until then connections are made and reset.
func closeFully(l net.Listener) {
	l.Close()
	for {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return
		}
		c.Close()
	}
}

// TestRefusedDuringCall: a server over HTTP that answers before a call and is gone
// when it is made never had it, so the call is made again when the server is back,
// whatever it may do.
func TestRefusedDuringCall(t *testing.T) {
	t.Parallel()
	t.Run("it answers", func(t *testing.T) {
		if res := refusedOnce(t, func() {}); res.IsError || res.Text != "done" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("it breaks", func(t *testing.T) {
		if res := refusedOnce(t, func() { panic(http.ErrAbortHandler) }); !strings.HasPrefix(res.Text, "Outcome unknown: ") {
			t.Errorf("%+v", res)
		}
	})
}

// refusedOnce makes a call whose first try is refused, and whose second, the only
// one that may arrive, does as told.
func refusedOnce(t *testing.T, arrived func()) tool.Result {
	listener, again := sharedPort(t)
	var s *Set
	var calls, gone atomic.Int64
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: answering(func(_ http.ResponseWriter, q fakeRequest) {
		switch {
		case q.Method == "tools/call":
			calls.Add(1)
			arrived()
		case q.Method == "ping" && gone.Add(1) == 1: // the next connection is refused
			s.servers[0].connecting.Lock()
			closeFully(listener)
		}
	})}
	srv.SetKeepAlivesEnabled(false)
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(func() { _ = srv.Close() })
	s = open(t, Options{}, Server{Name: "h", URL: "http://" + listener.Addr().String(), StartTimeoutSeconds: 3600, CallTimeoutSeconds: 3600})
	tools, news := offered(t, s)
	if len(news) > 0 {
		t.Fatalf("%q", news)
	}
	before := s.servers[0].ses
	returned := make(chan struct{})
	defer close(returned)
	go func() {
		select {
		case <-before.closed: // the call was refused
		case <-returned: // as it should not without that
		}
		l := again()
		s.servers[0].connecting.Unlock()
		_ = srv.Serve(l)
	}()
	res := call(t, tools["mcp__h__work"], nil)
	if calls.Load() != 1 {
		t.Errorf("%d calls arrived, want 1", calls.Load())
	}
	return res
}

// TestLostOverHTTP: a call over HTTP whose connection breaks before the answer may
// have taken effect. Only one that can do no harm twice is made twice, and what is
// not an answer of the server's is not said to be one.
func TestLostOverHTTP(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tool  string
		again bool // the server is there afterwards
		away  bool // it sends the call elsewhere
		want  string
		calls int64
	}{
		"it is back":           {tool: "work", again: true, want: "is connected again; look before you repeat the call", calls: 1},
		"it is not":            {tool: "work", want: "could not be reached again: ", calls: 1},
		"harmless":             {tool: "die_once", again: true, want: "done", calls: 2},
		"harmless, and is not": {tool: "die_once", want: "could not be reached again: ", calls: 1},
		"sent elsewhere":       {tool: "work", again: true, away: true, want: "refused the call: ", calls: 1},
	} {
		var calls atomic.Int64
		var srv *httptest.Server
		srv = httptest.NewUnstartedServer(answering(func(w http.ResponseWriter, q fakeRequest) {
			if q.Method != "tools/call" || calls.Add(1) > 1 {
				return
			}
			if tt.away {
				w.Header().Set("Location", "http://elsewhere.invalid/")
				w.WriteHeader(http.StatusTemporaryRedirect)
				return
			}
			if !tt.again {
				srv.Listener.Close()
			}
			panic(http.ErrAbortHandler)
		}))
		srv.Config.SetKeepAlivesEnabled(false) // or what is there no more could still be reached
		srv.Start()
		t.Cleanup(srv.Close)
		tools, _ := offered(t, open(t, Options{}, Server{Name: "h", URL: srv.URL + "?key=of-the-person"}))
		res := call(t, tools["mcp__h__"+tt.tool], nil)
		lost := !tt.away && tt.want != "done"
		if !strings.Contains(res.Text, tt.want) || strings.HasPrefix(res.Text, "Outcome unknown: ") != lost ||
			res.IsError != (tt.want != "done") || calls.Load() != tt.calls {
			t.Errorf("%s: %+v after %d calls", name, res, calls.Load())
		}
		if tt.again {
			continue
		}
		if again := call(t, tools["mcp__h__"+tt.tool], nil); !strings.HasPrefix(again.Text, "Not run: ") ||
			strings.Contains(res.Text+again.Text, "of-the-person") {
			t.Errorf("%s: %q, then %q", name, res.Text, again.Text)
		}
	}
}

// answering is a server over HTTP with the tools work and die_once, which both say
// that they are done. It asks before about each request; what that answers itself stays.
func answering(before func(http.ResponseWriter, fakeRequest)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q fakeRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		before(w, q)
		answer := `"result":{}`
		switch q.Method {
		case "server/discover":
			answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		case "tools/list":
			answer = `"result":{"tools":[` + fakeTools([]string{"work", "die_once"}) + `]}`
		case "tools/call":
			answer = `"result":{"content":[{"type":"text","text":"done"}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, answer)
	})
}
