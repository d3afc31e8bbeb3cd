// Package door controls access to a server on this machine: a request needs the token of its
// address, and a change must come from the server's own pages.
package door

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// secretBytes is the number of random bytes in the token and in the cookie.
const secretBytes = 32

// Policy is the content security policy: the server's own files, no inline scripts or styles,
// nothing from elsewhere.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Door checks requests.
type Door struct {
	hosts  []string // accepted Host values; the first is used in the URL
	Token  string   // in the URL that is printed
	ticket string   // the cookie's value
	cookie string   // the cookie's name, which holds the port: cookies do not distinguish ports
}

// New returns the door of a server at addr.
func New(addr net.Addr) (*Door, error) {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, fmt.Errorf("the server's address: %w", err)
	}
	d := &Door{
		hosts:  []string{addr.String(), net.JoinHostPort("localhost", port)},
		Token:  secret(),
		ticket: secret(),
		cookie: "anamnesis-" + port,
	}
	return d, nil
}

func secret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// URL is the address to open, with the token.
func (d *Door) URL() string { return "http://" + d.hosts[0] + "/?token=" + d.Token }

// TurnAway answers a request without the cookie; why may be empty.
type TurnAway func(w http.ResponseWriter, r *http.Request, why string)

// Wrap returns a handler that checks requests before h.
func (d *Door) Wrap(turnAway TurnAway, inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		// Not no-referrer: with that, browsers send the Origin null.
		h.Set("Referrer-Policy", "same-origin")
		if why := d.foreign(r); why != "" {
			// Plain text: such a request does not come from this server's pages.
			http.Error(w, why, http.StatusForbidden)
			return
		}
		switch {
		case r.URL.Path == "/" && r.URL.Query().Has("token") && reads(r):
			d.exchange(turnAway, w, r)
		case strings.HasPrefix(r.URL.Path, "/static/") || d.authenticated(r):
			inside.ServeHTTP(w, r)
		default:
			turnAway(w, r, "")
		}
	})
}

// foreign returns why a request does not come from this server's pages, or "".
func (d *Door) foreign(r *http.Request) string {
	if !slices.Contains(d.hosts, r.Host) {
		return "this server is not called that: open the address that 'anamnesis serve' printed"
	}
	origin := r.Header.Get("Origin")
	if origin != "" || !reads(r) {
		host, plain := strings.CutPrefix(origin, "http://")
		if !plain || host != r.Host {
			return "a page of another origin may not do this"
		}
	}
	// A link from elsewhere may be followed. Other sites' pages may neither embed this
	// page nor detect it.
	site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
	if (site == "cross-site" || site == "same-site") && (!reads(r) || mode != "navigate") {
		return "a page of another site may not read this"
	}
	return ""
}

// reads reports whether a method changes nothing.
func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// authenticated reports whether a request has the right cookie. A server on another port can set
// cookies of the same name; those are skipped.
func (d *Door) authenticated(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(d.cookie),
		func(c *http.Cookie) bool { return equalSecrets(c.Value, d.ticket) })
}

// exchange returns the cookie for the token, and an address without it.
func (d *Door) exchange(turnAway TurnAway, w http.ResponseWriter, r *http.Request) {
	if !equalSecrets(r.URL.Query().Get("token"), d.Token) {
		turnAway(w, r, "The token in this address is not this server's: each start of the server creates a new one.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: d.cookie, Value: d.ticket, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
