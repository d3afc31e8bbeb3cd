// Package door decides who may use a server of this machine: those who were given its
// address with the token, from pages of its own.
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

// secretBytes is how many random bytes the token and the cookie hold each.
const secretBytes = 32

// Policy is what a page may load and run: the server's own files, nothing
// written into a page, nothing from elsewhere.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Door decides who is let in.
type Door struct {
	hosts  []string // what a request may call the server, the first in its URL
	Token  string   // in the URL that is printed
	ticket string   // in the cookie the token is exchanged for
	cookie string   // its name; cookies know no ports, so it holds the port
}

// New makes the door of a server that is reached at addr.
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

// TurnAway answers a user without the cookie; why may be empty.
type TurnAway func(w http.ResponseWriter, r *http.Request, why string)

// Wrap puts the door before a handler.
func (d *Door) Wrap(turnAway TurnAway, inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		// Not no-referrer: that would have browsers send the Origin null.
		h.Set("Referrer-Policy", "same-origin")
		if why := d.foreign(r); why != "" {
			// Plain text: it is not for whom this server's pages are.
			http.Error(w, why, http.StatusForbidden)
			return
		}
		switch {
		case r.URL.Path == "/" && r.URL.Query().Has("token") && reads(r):
			d.exchange(turnAway, w, r)
		case strings.HasPrefix(r.URL.Path, "/static/") || d.known(r):
			inside.ServeHTTP(w, r)
		default:
			turnAway(w, r, "")
		}
	})
}

// foreign says why a request is not one of a user at this machine who uses a
// page of this server; "" when it may be.
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
	// A link from elsewhere may be followed; other sites' pages may neither
	// embed what is here nor learn that it is here.
	site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
	if (site == "cross-site" || site == "same-site") && (!reads(r) || mode != "navigate") {
		return "a page of another site may not read this"
	}
	return ""
}

// reads reports a method that changes nothing.
func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// known reports the cookie of someone who had the token. A server on another
// port can give the browser cookies of the same name: those do not lock it out.
func (d *Door) known(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(d.cookie), func(c *http.Cookie) bool { return same(c.Value, d.ticket) })
}

// exchange returns the cookie for the token, and an address without it.
func (d *Door) exchange(turnAway TurnAway, w http.ResponseWriter, r *http.Request) {
	if !same(r.URL.Query().Get("token"), d.Token) {
		turnAway(w, r, "The token in this address is not this server's: each start of the server creates a new one.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: d.cookie, Value: d.ticket, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
