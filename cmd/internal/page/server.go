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
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/report"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
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

// Service is what a server needs of the tasks; session.Service has it.
type Service interface {
	listing
	records
	steering
	repositories
}

type listing interface {
	Tasks() ([]taskdir.Summary, error)
	Follow(task string) (*taskdir.Follower, error)
	Live(task string) int
	Answer(ctx context.Context, task string, seq uint64, text, from string) (running bool, err error)
}

type records interface {
	State(task string) (*state.State, error)
	Ops(task string, after uint64, visit func(op.Op) error) error
	Explain(task string, seq uint64) (inspect.Explanation, []model.Message, error)
	World(st *state.State) (*worldstate.World, error)
	StoreOf(*op.TaskOpened) string
	Report(ctx context.Context, task string) (*report.Report, error)
}

// Options are what a server shows.
type Options struct {
	// Tasks are the tasks.
	Tasks Service
	// Store holds the cards. It should be opened with Watch, so that what
	// others change is seen at once. The server does not close it.
	Store *knowledgebase.Store
}

// Server answers the pages of one process. Its methods may be called
// concurrently.
type Server struct {
	tasks Service
	store *knowledgebase.Store
	desk  *review.Desk
	door  *door.Door
	pages *pages
	mux   *http.ServeMux

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
	d, err := door.New(addr)
	if err != nil {
		return nil, err
	}
	p, err := parsePages()
	if err != nil {
		return nil, err
	}
	s := &Server{tasks: o.Tasks, store: o.Store, desk: review.NewDesk(o.Store), door: d, pages: p,
		mux: http.NewServeMux(), watches: watches{tasks: o.Tasks}}
	s.routes()
	return s, nil
}

// URL is the address to open: it holds the token, and is as secret.
func (s *Server) URL() string { return s.door.URL() }

// ServeHTTP answers one request, or turns it away at the door.
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
	if stop() {
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	}
	<-ended
	return nil
}

// routes lists every path and its handler.
func (s *Server) routes() {
	cardPage := func(from origin) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error { return s.showCard(w, r, http.StatusOK, from, "") }
	}
	s.handle("GET /static/{name}", s.sendStatic)
	s.handle("GET /{$}", func(w http.ResponseWriter, r *http.Request) error {
		http.Redirect(w, r, "/review", http.StatusSeeOther)
		return nil
	})
	// Only GET: so the mux itself answers another method with 405.
	s.handle("GET /", func(http.ResponseWriter, *http.Request) error { return errNoPage })
	s.handle("GET /review", s.showQueue)
	s.handle("POST /review", s.decideMany)
	s.handle("GET /review/{card}", cardPage(fromReview))
	s.handle("POST /undo", s.undo)
	s.handle("GET /cards", s.listCards)
	s.handle("GET /cards/{card}", cardPage(fromCard))
	s.handle("POST /cards/{card}/decide", s.decide)
	s.handle("GET /cards/{card}/edit", s.showEdit)
	s.handle("POST /cards/{card}/edit", s.edit)
	s.handle("POST /preview", s.preview)
	s.handle("GET /cards/{card}/history", s.showHistory)
	s.handle("GET /cards/{card}/evidence", s.showEvidence)
	s.handle("GET /tasks", s.showTasks)
	s.handle("GET /tasks/{task}", s.showTask)
	s.handle("GET /tasks/{task}/live", s.showLive)
	s.handle("POST /tasks/{task}/answer", s.answer)
	s.handle("GET /tasks/{task}/jump", s.planJump)
	s.handle("POST /tasks/{task}/jump", s.jump)
	s.handle("POST /tasks/{task}/say", s.say)
	s.handle("POST /tasks/{task}/stop", s.stop)
	s.handle("GET /tasks/{task}/report", s.showReport)
	s.handle("GET /tasks/{task}/ops/{seq}", s.showOp)
	s.handle("GET /tasks/{task}/ops/{seq}/context", s.showContext)
	s.handle("GET /tasks/{task}/steps/{step}", s.showStep)
	s.handle("GET /tasks/{task}/facts", s.showFacts)
	s.handle("POST /tasks/{task}/facts", s.correctFact)
}

// handle registers a handler. An error that it returns becomes a page that says so;
// the handler must not have written anything then.
func (s *Server) handle(pattern string, answer func(http.ResponseWriter, *http.Request) error) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := answer(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
}
