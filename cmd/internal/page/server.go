package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"anamnesis/cmd/internal/page/door"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/review"
	"anamnesis/orchestrator/session"
)

const (
	// maxHeaderBytes bounds a request's header.
	maxHeaderBytes = 64 << 10
	// headerWait is how long a request's header may take to arrive.
	headerWait = 10 * time.Second
	// requestWait is how long all of a request may take to arrive, answerWait how
	// long it may take to make its answer and have it read.
	requestWait = time.Minute
	answerWait  = 5 * time.Minute
	// idleWait is how long a connection is kept for the next request.
	idleWait = 2 * time.Minute
	// closeWait is how long running requests may take after the server was
	// told to end; then their connections are closed.
	closeWait = 3 * time.Second
)

// ErrNotLoopback is returned by [Listen] for an address others could reach.
var ErrNotLoopback = errors.New("not an address of this machine alone")

type Options struct {
	Tasks *session.Service
	// Store holds the cards. It should be opened with Watch, so that what
	// others change is seen at once. The server does not close it.
	Store *knowledgebase.Store
	// Origins are those at which proxies of the user make the server reachable, such as https://desk.example.net.
	Origins []string
	// Renewed is called with the new addresses when a user has ended a session; may be nil.
	Renewed func(urls []string)
	// Mirror brings a task up to date that is a copy of a bucket's; nil: none is.
	Mirror func(ctx context.Context, task string) error
}

// Server answers the pages of one process. Its methods may be called
// concurrently.
type Server struct {
	tasks   *session.Service
	store   *knowledgebase.Store
	desk    *review.Desk
	door    *door.Door
	renewed func([]string)
	mirror  func(ctx context.Context, task string) error // see Options
	pages   *pages
	mux     *http.ServeMux

	watches watches
}

// Listen opens a TCP port for a server. Addr is HOST:PORT; port 0 is any free
// one. A host that is no loopback address is an ErrNotLoopback.
func Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", addr, err)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("listen on %q: %w", addr, ErrNotLoopback)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", addr, err)
	}
	return l, nil
}

// New makes a server that will be reached at addr, the address of a listener
// from [Listen].
func New(addr net.Addr, o Options) (*Server, error) {
	d, err := door.New(addr, o.Origins...)
	if err != nil {
		return nil, err
	}
	p, err := parsePages()
	if err != nil {
		return nil, err
	}
	s := &Server{tasks: o.Tasks, store: o.Store, desk: review.NewDesk(o.Store), door: d, renewed: o.Renewed,
		mirror: o.Mirror, pages: p,
		mux: http.NewServeMux(), watches: watches{tasks: o.Tasks}}
	for _, t := range s.routes() {
		s.handle(t)
	}
	return s, nil
}

// URLs are the addresses to open, the server's own first: they hold a token with all rights, and are as secret.
func (s *Server) URLs() []string { return s.door.URLs(door.Jump) }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.door.Wrap(s.turnAway, s.mux).ServeHTTP(w, r)
}

// server returns what answers requests, with its limits.
func (s *Server) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           s,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: headerWait,
		ReadTimeout:       requestWait,
		WriteTimeout:      answerWait,
		IdleTimeout:       idleWait,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
}

// Serve answers requests on l until ctx ends, which is no error, and closes l.
// The contexts of requests end with ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := s.server(ctx)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
		defer cancel()
		if srv.Shutdown(wait) != nil {
			_ = srv.Close() // what did not end in time is cut
		}
	})
	err := srv.Serve(l)
	if stop() { // ctx has not ended, so the listener failed
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	<-ended // Serve returns when Shutdown begins; running requests still have closeWait
	return nil
}

// route is a path with the right that it needs.
type route struct {
	pattern string
	right   door.Right
	answer  func(http.ResponseWriter, *http.Request) error
}

// routes are all paths. TestRights has a row for each.
func (s *Server) routes() []route {
	cardPage := func(from origin) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error { return s.showCard(w, r, http.StatusOK, from, "") }
	}
	return []route{
		{"GET /static/{name}", door.Anyone, s.sendStatic},
		{"GET /{$}", door.Read, func(w http.ResponseWriter, r *http.Request) error {
			http.Redirect(w, r, "/review", http.StatusSeeOther)
			return nil
		}},
		// Only GET: so the mux itself answers another method with 405.
		{"GET /", door.Read, func(http.ResponseWriter, *http.Request) error { return errNoPage }},
		{"GET /review", door.Read, s.showQueue},
		{"POST /review", door.Answer, s.decideMany},
		{"GET /review/{card}", door.Read, cardPage(fromReview)},
		{"POST /undo", door.Answer, s.undo},
		{"GET /cards", door.Read, s.listCards},
		{"GET /cards/{card}", door.Read, cardPage(fromCard)},
		{"POST /cards/{card}/decide", door.Answer, s.decide},
		{"GET /cards/{card}/edit", door.Answer, s.showEdit},
		{"POST /cards/{card}/edit", door.Answer, s.edit},
		{"POST /preview", door.Answer, s.preview},
		{"GET /cards/{card}/history", door.Read, s.showHistory},
		{"GET /cards/{card}/evidence", door.Read, s.showEvidence},
		{"GET /tasks", door.Read, s.showTasks},
		{"GET /tasks/{task}", door.Read, s.showTask},
		{"GET /tasks/{task}/live", door.Read, s.showLive},
		{"GET /tasks/{task}/report", door.Read, s.showReport},
		{"GET /tasks/{task}/ops/{seq}", door.Read, s.showOp},
		{"GET /tasks/{task}/ops/{seq}/context", door.Read, s.showContext},
		{"GET /tasks/{task}/steps/{step}", door.Read, s.showStep},
		{"GET /tasks/{task}/steps/{step}/blame", door.Read, s.showBlame},
		{"POST /tasks/{task}/answer", door.Answer, s.answer},
		{"POST /tasks/{task}/say", door.Answer, s.say},
		{"POST /tasks/{task}/stop", door.Answer, s.stop},
		{"GET /tasks/{task}/jump", door.Jump, s.planJump},
		{"POST /tasks/{task}/jump", door.Jump, s.jump},
		{"GET /tasks/{task}/facts", door.Read, s.showFacts},
		{"POST /tasks/{task}/facts", door.Answer, s.correctFact},
		{"GET /sessions", door.Jump, s.showSessions},
		{"POST /sessions", door.Jump, s.revoke},
	}
}

// handle registers a route, whose form is read. An error that it returns becomes a page that says so;
// the handler must not have written anything then.
func (s *Server) handle(t route) {
	s.mux.HandleFunc(t.pattern, func(w http.ResponseWriter, r *http.Request) {
		var err error
		if may := door.SessionOf(r).Right; may < t.right {
			err = refuse(http.StatusForbidden, "This browser may %s only, and this needs the right to %s. Open an "+
				"address that gives it: a browser with all rights shows them under Access.", may, t.right)
		} else if err = readForm(w, r); err == nil {
			err = t.answer(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	})
}
