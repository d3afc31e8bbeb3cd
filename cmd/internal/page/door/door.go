// Package door controls access to a server on this machine: a browser exchanges the token of an
// address for a session with a right, and a change must come from the server's own pages.
package door

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// secretBytes is the number of random bytes in a token and in a cookie.
	secretBytes = 32
	// maxSessions is how many sessions a server keeps; beyond them the one least recently used ends.
	maxSessions = 64
	// maxAgent is how much of a browser's name is kept, in bytes.
	maxAgent = 300
)

// Policy is the content security policy: the server's own files, no inline scripts or styles,
// nothing from elsewhere.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Right is what a browser may do. Each right includes those before it.
type Right int

const (
	Anyone Right = iota // files without content
	Read                // cards, tasks and their files
	Answer              // decide about cards, answer a task, send it messages, end its turn
	Jump                // take files back, and give and end sessions
)

func (r Right) String() string { return [...]string{"anyone", "read", "answer", "jump"}[r] }

// Session is a browser that has exchanged a token.
type Session struct {
	ID          int
	Right       Right
	Agent, Host string // what the browser calls itself, and the name it reached the server by
	Began, Used time.Time
	ticket      string // the cookie's value
}

// Door checks requests. Its methods may be called concurrently.
type Door struct {
	hosts   []string // accepted Host values
	origins []string // accepted Origin values; the first is used in the URL
	cookie  string   // the cookie's name, which holds the port: cookies do not distinguish ports

	mu       sync.Mutex
	tokens   map[Right]string
	sessions []*Session // least recently begun first
	last     int        // the last session's id
}

// New returns the door of a server at addr that proxies of the user make reachable at further origins, such as
// https://desk.example.net.
func New(addr net.Addr, origins ...string) (*Door, error) {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, fmt.Errorf("the server's address: %w", err)
	}
	d := &Door{hosts: []string{addr.String(), net.JoinHostPort("localhost", port)}, cookie: "anamnesis-" + port}
	for _, host := range d.hosts {
		d.origins = append(d.origins, "http://"+host)
	}
	for _, origin := range origins {
		u, err := url.Parse(strings.TrimSuffix(origin, "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			u.String() != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("%q is no origin: want https://HOST or https://HOST:PORT, without a path", origin)
		}
		u.Host = strings.ToLower(u.Host)
		d.hosts, d.origins = append(d.hosts, u.Host), append(d.origins, u.String())
	}
	d.renew()
	return d, nil
}

func secret() string {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// renew replaces the tokens. The caller holds mu, or nobody else has the door yet.
func (d *Door) renew() { d.tokens = map[Right]string{Read: secret(), Answer: secret(), Jump: secret()} }

// URLs are the addresses to open, with the token of a right: the server's own first, then those of proxies.
func (d *Door) URLs(r Right) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, origin := range slices.Concat(d.origins[:1], d.origins[2:]) { // [1] is localhost, the server's own again
		out = append(out, origin+"/?token="+d.tokens[r])
	}
	return out
}

// Sessions returns the sessions, the last used first.
func (d *Door) Sessions() (out []Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		out = append(out, *s)
	}
	slices.SortStableFunc(out, func(a, b Session) int { return b.Used.Compare(a.Used) })
	return out
}

// Revoke ends the sessions that match, and replaces the tokens, since their browsers may have kept an address.
func (d *Door) Revoke(match func(Session) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = slices.DeleteFunc(d.sessions, func(s *Session) bool { return match(*s) })
	d.renew()
}

type sessionKey struct{}

// SessionOf returns the session of a request that came through the door; the zero Session has no right but Anyone.
func SessionOf(r *http.Request) Session {
	s, _ := r.Context().Value(sessionKey{}).(Session)
	return s
}

// TurnAway answers a request without the cookie; why may be empty.
type TurnAway func(w http.ResponseWriter, r *http.Request, why string)

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
		s, in := d.authenticate(r)
		switch {
		case r.URL.Path == "/" && r.URL.Query().Has("token") && reads(r):
			d.exchange(turnAway, w, r, s.ID)
		case in || strings.HasPrefix(r.URL.Path, "/static/"):
			inside.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, s)))
		default:
			turnAway(w, r, "")
		}
	})
}

// foreign returns why a request does not come from this server's pages, or "".
func (d *Door) foreign(r *http.Request) string {
	if !slices.Contains(d.hosts, strings.ToLower(r.Host)) {
		return "this server is not called that: open an address that 'anamnesis serve' printed; for a proxy of " +
			"yours, start it with --origin"
	}
	if origin := r.Header.Get("Origin"); (origin != "" || !reads(r)) && !slices.Contains(d.origins, origin) {
		return "a page of another origin may not do this"
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

// authenticate returns the session whose cookie a request has. A server on another port can set
// cookies of the same name; those are skipped.
func (d *Door) authenticate(r *http.Request) (Session, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range r.CookiesNamed(d.cookie) {
		for _, s := range d.sessions {
			if equalSecrets(c.Value, s.ticket) {
				s.Used = time.Now()
				return *s, true
			}
		}
	}
	return Session{}, false
}

// exchange begins a session for a token, and leads to an address without it. The session that the browser had ends.
func (d *Door) exchange(turnAway TurnAway, w http.ResponseWriter, r *http.Request, had int) {
	d.mu.Lock()
	s := &Session{Host: r.Host, Agent: r.UserAgent(), Began: time.Now(), Used: time.Now(), ticket: secret()}
	s.Agent = s.Agent[:min(len(s.Agent), maxAgent)]
	for right, token := range d.tokens {
		if equalSecrets(r.URL.Query().Get("token"), token) {
			s.Right = right
		}
	}
	if s.Right != Anyone {
		d.last++
		s.ID = d.last
		d.sessions = append(slices.DeleteFunc(d.sessions, func(s *Session) bool { return s.ID == had }), s)
		if len(d.sessions) > maxSessions {
			oldest := slices.MinFunc(d.sessions[:maxSessions], // without the new one, at the end
				func(a, b *Session) int { return a.Used.Compare(b.Used) })
			d.sessions = slices.DeleteFunc(d.sessions, func(s *Session) bool { return s == oldest })
		}
	}
	d.mu.Unlock()
	if s.Right == Anyone {
		turnAway(w, r,
			"The token in this address is not this server's: it is new at each start, and when a session was ended.")
		return
	}
	secure := r.Header.Get("X-Forwarded-Proto") == "https" ||
		slices.Contains(d.origins, "https://"+strings.ToLower(r.Host))
	http.SetCookie(w, &http.Cookie{Name: d.cookie, Value: s.ticket, Path: "/", HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
