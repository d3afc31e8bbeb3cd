//go:build unix

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// oauthServer is an MCP server and its authorization server in one: it registers clients, wants
// PKCE, and accepts each refresh token once.
type oauthServer struct {
	mu                    sync.Mutex
	url                   string
	challenge, redirect   string
	issued                int
	denies, revoked, gone bool // refuses the user; accepts no token; refuses to refresh
	seconds               int  // how long a token is valid
}

func (s *oauthServer) token() string { return fmt.Sprintf("access-%d", s.issued) }

func (s *oauthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	q := r.URL.Query()
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp":
		reply(200, map[string]any{"resource": s.url + "/mcp", "authorization_servers": []string{s.url}})
	case "/.well-known/oauth-authorization-server":
		reply(200, map[string]any{"issuer": s.url, "authorization_endpoint": s.url + "/authorize",
			"token_endpoint":        s.url + "/token",
			"registration_endpoint": s.url + "/register", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}})
	case "/register":
		var client map[string]any
		_ = json.NewDecoder(r.Body).Decode(&client)
		client["client_id"] = "client-1"
		reply(201, client)
	case "/authorize":
		back := url.Values{"state": {q.Get("state")}, "code": {"code-1"}}
		if s.denies {
			back = url.Values{"state": {q.Get("state")}, "error": {"access_denied"}, "error_description": {"not you"}}
		}
		s.challenge, s.redirect = q.Get("code_challenge"), q.Get("redirect_uri")
		http.Redirect(w, r, s.redirect+"?"+back.Encode(), http.StatusFound)
	case "/token":
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		code := r.FormValue("code") == "code-1" && base64.RawURLEncoding.EncodeToString(sum[:]) == s.challenge &&
			r.FormValue("redirect_uri") == s.redirect
		refresh := !s.gone && r.FormValue("refresh_token") == fmt.Sprintf("refresh-%d", s.issued)
		if !code && !refresh {
			reply(400, map[string]any{"error": "invalid_grant"})
			return
		}
		s.issued++
		reply(200, map[string]any{
			"access_token": s.token(), "token_type": "Bearer", "expires_in": s.seconds,
			"refresh_token": fmt.Sprintf("refresh-%d", s.issued),
		})
	case "/mcp":
		if s.issued == 0 || s.revoked || r.Header.Get("Authorization") != "Bearer "+s.token() {
			w.Header().Set("WWW-Authenticate",
				`Bearer resource_metadata="`+s.url+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		switch m.Method {
		case "initialize":
			reply(200,
				map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"protocolVersion": "2025-06-18",
					"serverInfo": map[string]any{"name": "locked", "version": "1"}, "capabilities": map[string]any{"tools": map[string]any{}}}})
		case "tools/list":
			reply(200, map[string]any{
				"jsonrpc": "2.0", "id": m.ID,
				"result": map[string]any{"tools": []any{map[string]any{"name": "open_door", "inputSchema": map[string]any{"type": "object"}}}},
			})
		default:
			reply(200, map[string]any{"jsonrpc": "2.0", "id": m.ID,
				"error": map[string]any{"code": -32601, "message": "no such method"}})
		}
	default:
		http.NotFound(w, r)
	}
}

func (s *oauthServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// TestMCPLogin: a user logs in at a server in the browser; its token is stored for the user alone,
// refreshed when it has expired, and a login that no longer works names the command that opens one.
func TestMCPLogin(t *testing.T) {
	s := &oauthServer{seconds: 3600}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	home := mcpHome(t, map[string]any{"locked": map[string]any{"url": srv.URL + "/mcp"}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	expect := func(want string, args ...string) {
		t.Helper()
		if out, _ := program(ctx, []string{"ANAMNESIS_HOME=" + home}, args...); !strings.Contains(out, want) {
			t.Errorf("%v: want %q:\n%s", args, want, out)
		}
	}
	login := func() string {
		t.Helper()
		cmd := exec.CommandContext(ctx, os.Args[0], "mcp", "login", "locked")
		cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+home)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = cmd.Stdout
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if strings.HasPrefix(lines.Text(), srv.URL+"/authorize?") { // what a browser does
				res, err := http.Get(lines.Text())
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
			}
		}
		_ = cmd.Wait()
		return all.String()
	}
	expect("MCP server locked: it wants a login, or accepts the stored one no longer (401 Unauthorized): 'mcp login locked' opens one", "mcp", "test", "locked")
	s.set(func() { s.denies = true })
	if out := login(); !strings.Contains(out, "MCP server locked: the login was refused: access_denied, not you") {
		t.Errorf("a refused login:\n%s", out)
	}
	s.set(func() { s.denies = false })
	if out := login(); !strings.Contains(out, "logged in at locked") {
		t.Fatalf("a login:\n%s", out)
	}
	file := ""
	_ = filepath.WalkDir(home, func(path string, d os.DirEntry, _ error) error {
		if filepath.Base(filepath.Dir(path)) == "mcp-logins" {
			file = path
		}
		return nil
	})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the login: %v, %v", info, err)
	}
	expect("open_door", "mcp", "test", "locked")
	expire := func() {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]map[string]any
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		all["token"]["expiry"] = "2020-01-01T00:00:00Z"
		if data, err = json.Marshal(all); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expire()
	expect("open_door", "mcp", "test", "locked")
	s.set(func() {
		if s.issued != 2 {
			t.Errorf("%d tokens were issued, want a refreshed one", s.issued)
		}
	})
	expect("open_door", "mcp", "test", "locked") // the refreshed token is stored
	expire()
	s.set(func() { s.gone = true })
	expect("'mcp login locked' opens one", "mcp", "test", "locked")
	s.set(func() { s.gone = false })
	expect("no login is stored for locked", "mcp", "logout", "locked")
	expect("it wants a login", "mcp", "test", "locked")
	expect("The MCP server locked is not there: it wants a login", "run", "--dir", t.TempDir(), "--model",
		"script:"+wordsFile(t), "--approval", "auto", "--task", "one", "Go on.")
}

func wordsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "words.yaml")
	if err := os.WriteFile(path, []byte("turns:\n  - reply: I go on.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
