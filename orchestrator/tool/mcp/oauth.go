package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"anamnesis/opstream/durable"
)

const (
	// loginTime is how long a user has to log in, in the browser.
	loginTime = 5 * time.Minute
	// refreshTimeout bounds one request for a new token.
	refreshTimeout = 30 * time.Second
	maxLoginsBytes = 1 << 20
)

// login is a user's login at a server, as it is stored.
type login struct {
	Client oauth2.Config `json:"client"`
	Token  *oauth2.Token `json:"token"`
}

// logins is the file of a user's logins, by the servers' addresses: a token goes only to the
// address that it was issued for. It implements auth.OAuthHandler and oauth2.TokenSource for one.
type logins struct {
	path, server, address string
	mu                    sync.Mutex
}

func (l *logins) read() (map[string]login, error) {
	all := make(map[string]login)
	data, err := durable.ReadFile(l.path, maxLoginsBytes)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the logins of MCP servers in %s: %w; remove the file and log in again", l.path, err)
	}
	return all, nil
}

// put stores the login; nil removes it.
func (l *logins) put(now *login) error {
	err := os.MkdirAll(filepath.Dir(l.path), 0o700)
	lock, lockErr := durable.Lock(l.path + ".lock")
	if err = cmp.Or(err, lockErr); err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	defer lock.Close()
	all, err := l.read()
	if err != nil {
		return err
	}
	if delete(all, l.address); now != nil {
		all[l.address] = *now
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	return durable.Replace(l.path, data, 0o600)
}

// TokenSource implements auth.OAuthHandler.
func (l *logins) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if all, err := l.read(); err != nil || all[l.address].Token == nil {
		return nil, err
	}
	return l, nil
}

// Token implements oauth2.TokenSource. It reads the file each time: another process may have
// refreshed the token, and many servers accept a refresh token once.
func (l *logins) Token() (*oauth2.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.read()
	if err != nil {
		return nil, err
	}
	now := all[l.address]
	client := &http.Client{Timeout: refreshTimeout}
	token, err := now.Client.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client), now.Token).Token()
	if err != nil || token.AccessToken == now.Token.AccessToken {
		return token, err
	}
	now.Token = token
	return token, l.put(&now)
}

// Authorize implements auth.OAuthHandler. A task does not open a browser: the user logs in before.
func (l *logins) Authorize(_ context.Context, _ *http.Request, res *http.Response) error {
	res.Body.Close()
	return &refusal{fmt.Sprintf("it wants a login, or accepts the stored one no longer (%s): 'mcp login %s' opens one", res.Status, l.server)}
}

// Login logs a user in at a server of HTTP: by OAuth with PKCE, with the authorization server that
// the server's metadata name, as a client that is registered there. show gets the address that the
// user opens in a browser on this machine.
func Login(ctx context.Context, s Server, o Options, show func(address string)) error {
	o = o.withDefaults()
	address, err := expand(s.URL, o.Getenv)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	u, err := url.Parse(address)
	if err != nil || s.URL == "" || u.Scheme != "https" && !net.ParseIP(u.Hostname()).IsLoopback() && u.Hostname() != "localhost" {
		return errors.New("a login needs a server with an https:// address")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the browser's answer: %w", err)
	}
	redirect, answers := "http://"+listener.Addr().String()+"/callback", make(chan url.Values, 1)
	page := &http.Server{ReadHeaderTimeout: refreshTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.URL.Path == "/callback" && (q.Has("code") || q.Has("error")) {
			select {
			case answers <- q:
			default:
			}
			fmt.Fprintln(w, "You can close this page and return to the terminal.")
			return
		}
		http.NotFound(w, r)
	})}
	go func() { _ = page.Serve(listener) }() // ends with Close
	defer page.Close()
	stored, asked := &logins{path: o.Logins, server: s.Name, address: address}, false
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Anamnesis", RedirectURIs: []string{redirect}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"},
		}},
		RequestRefreshToken: true,
		Client:              &http.Client{Timeout: refreshTimeout},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			show(args.URL)
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case q := <-answers:
				if q.Has("error") {
					return nil, &refusal{"the login was refused: " + words(q.Get("error"), q.Get("error_description"))}
				}
				return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
			}
		},
		NewTokenSource: func(_ context.Context, client *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			asked = true
			return stored, stored.put(&login{*client, token})
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the login: %w", err)
	}
	o.oauth, s.StartTimeoutSeconds = handler, int(loginTime.Seconds())
	ses, err := connect(ctx, s, &o, events{changed: func() {}, progress: func(any, string) {}})
	if err != nil {
		return err
	}
	defer ses.end()
	if _, err := ses.tools(ctx, s.startTimeout()); err != nil {
		return err
	}
	if !asked {
		return errors.New("it asks for no login")
	}
	return nil
}

// Logout removes a login. Without one it does nothing.
func Logout(s Server, o Options) error {
	address, err := expand(s.URL, o.withDefaults().Getenv)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return (&logins{path: o.Logins, address: address}).put(nil)
}
