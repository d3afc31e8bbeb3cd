package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
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
	maxLoginBytes  = 1 << 20
)

// login is a user's login at a server, as it is stored.
type login struct {
	Client oauth2.Config `json:"client"`
	Token  *oauth2.Token `json:"token"`
}

// stored is the file of a user's login at an address: a token goes only where it was issued for. It
// implements auth.OAuthHandler and oauth2.TokenSource.
type stored struct {
	path, server string
	mu           sync.Mutex
}

// storedLogin returns the file of the login at a server's address, in the folder of all logins.
func storedLogin(folder, server, address string) *stored {
	return &stored{path: filepath.Join(folder, fmt.Sprintf("%x.json", sha256.Sum256([]byte(address)))), server: server}
}

// read returns an empty login if there is none.
func (l *stored) read() (now login, err error) {
	data, err := durable.ReadFile(l.path, maxLoginBytes)
	if errors.Is(err, os.ErrNotExist) {
		return now, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &now)
	}
	if err != nil {
		err = fmt.Errorf("read the login in %s: %w; remove the file and log in again", l.path, err)
	}
	return now, err
}

func (l *stored) put(now login) error {
	data, err := json.Marshal(now)
	if err == nil {
		err = cmp.Or(os.MkdirAll(filepath.Dir(l.path), 0o700), durable.Replace(l.path, data, 0o600))
	}
	if err != nil {
		return fmt.Errorf("store the login: %w", err)
	}
	return nil
}

// TokenSource implements auth.OAuthHandler.
func (l *stored) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if now, err := l.read(); err != nil || now.Token == nil {
		return nil, err
	}
	return l, nil
}

// Token implements oauth2.TokenSource. It reads the file each time: another process may have
// refreshed the token, and many servers accept a refresh token once.
func (l *stored) Token() (*oauth2.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := l.read()
	if err != nil || now.Token == nil {
		return nil, cmp.Or(err, errors.New("the login was removed"))
	}
	client := &http.Client{Timeout: refreshTimeout}
	over := context.WithValue(context.Background(), oauth2.HTTPClient, client)
	token, err := now.Client.TokenSource(over, now.Token).Token()
	if err != nil || token.AccessToken == now.Token.AccessToken {
		return token, err
	}
	now.Token = token
	return token, l.put(now)
}

// Authorize implements auth.OAuthHandler. A task does not open a browser: the user logs in before.
func (l *stored) Authorize(_ context.Context, _ *http.Request, res *http.Response) error {
	res.Body.Close()
	return &refusal{fmt.Sprintf("it wants a login, or accepts the stored one no longer (%s): 'mcp login %s' opens one",
		res.Status, l.server)}
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
	here := err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
	if err != nil || s.URL == "" || u.Scheme != "https" && !here {
		return errors.New("a login needs a server with an https:// address")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the browser's answer: %w", err)
	}
	redirect, answers := "http://"+listener.Addr().String()+"/callback", make(chan url.Values, 1)
	answer := func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.URL.Path == "/callback" && (q.Has("code") || q.Has("error")) {
			select {
			case answers <- q:
			default:
			}
			fmt.Fprintln(w, "You can close this page and return to the terminal.")
			return
		}
		http.NotFound(w, r)
	}
	page := &http.Server{ReadHeaderTimeout: refreshTimeout, Handler: http.HandlerFunc(answer)}
	go func() { _ = page.Serve(listener) }() // ends with Close
	defer page.Close()
	file, asked := storedLogin(o.Logins, s.Name, address), false
	client := &oauthex.ClientRegistrationMetadata{
		ClientName: "Anamnesis", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
		ResponseTypes: []string{"code"}, GrantTypes: []string{"authorization_code", "refresh_token"},
	}
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: client},
		RequestRefreshToken:             true,
		Client:                          &http.Client{Timeout: refreshTimeout},
		AuthorizationCodeFetcher: func(
			ctx context.Context, a *auth.AuthorizationArgs,
		) (*auth.AuthorizationResult, error) {
			show(a.URL)
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
		NewTokenSource: func(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			asked = true
			return file, file.put(login{*c, token})
		},
	})
	if err != nil {
		return fmt.Errorf("prepare the login: %w", err)
	}
	o.oauth, s.StartTimeoutSeconds = handler, int(loginTime.Seconds())
	_, err = Probe(ctx, s, o)
	if err == nil && !asked {
		err = errors.New("it asks for no login")
	}
	return err
}

// Logout removes a login. Without one it does nothing.
func Logout(s Server, o Options) error {
	address, err := expand(s.URL, o.withDefaults().Getenv)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if err := os.Remove(storedLogin(o.Logins, s.Name, address).path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
