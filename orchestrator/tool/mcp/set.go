package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/tool"
)

// DefaultFirstWait is how long the first request to the model waits for
// servers that are still starting. They join when they are ready.
const DefaultFirstWait = 10 * time.Second

// pingTimeout is how long a server may take to answer the ping before a call. A slower server is called anyway.
const pingTimeout = 5 * time.Second

// Options are the environment of servers in this process.
type Options struct {
	Dir     string              // the world, absolute: where a project's commands run
	Empty   string              // the empty directory where a user's commands run, made on first use; "": /
	Getenv  func(string) string // for ${NAME}; nil: os.Getenv
	Program string              // this program's version, sent to servers
	Logins  string              // the folder of the user's logins; "": none
	// FirstWait is how long the first call of Tools waits; 0: DefaultFirstWait.
	FirstWait time.Duration
	// Trust holds the approvals. Ask asks the user a yes-or-no question; nil: there is no
	// user, and what is not approved is not used.
	Trust *consent.Trust
	Ask   func(ctx context.Context, question string) bool
	// Sandbox is the base of the sandboxes of a project's servers; nil: they run without one.
	// A Set gets it from Hold.
	Sandbox *guard.Sandbox
	// Note, if not nil, receives what was quarantined when a project's server ended.
	Note func(text string)

	oauth auth.OAuthHandler // of a login; nil: the stored one
}

func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.FirstWait = cmp.Or(o.FirstWait, DefaultFirstWait)
	return o
}

// The kinds of approvals.
const (
	trustCommand = "mcp-command" // its command or address
	trustTools   = "mcp-tools"   // its descriptions of its tools
)

// ErrUnapproved: the server's present content is not approved.
var ErrUnapproved = errors.New("its current content is not approved")

// unapproved is ErrUnapproved with the command that approves.
func (s Server) unapproved() error {
	return remedy.With(ErrUnapproved, remedy.ApproveServer, s.Name)
}

// Set is the servers of one task. It is a tool.Source; Tools belongs to one goroutine, its
// tools may be called concurrently.
type Set struct {
	o       Options
	servers []*member
	starts  sync.WaitGroup
	started chan struct{} // closed when every first start has ended
	held    chan struct{} // closed when Hold was called
	hold    sync.Once
	cancel  context.CancelFunc
	waited  bool
	offer   tool.Offer
}

// member is a server and the set's last news of it.
type member struct {
	server
	idle    bool   // not started: disabled, faulty or not approved
	ready   bool   // its first start has ended, well or not; guarded by server.mu
	news    string // the last news of it
	seen    uint64 // the version in the set's offer
	allowed string // hash of the tools that were approved in this process
	refused string // and of those that were not
}

// Open starts the servers concurrently and does not wait for them. A project's server is
// started only if its command is approved, or the user says yes now, and after Hold. Close
// must be called.
func Open(ctx context.Context, servers []Server, o Options) *Set {
	set := &Set{o: o.withDefaults(), started: make(chan struct{}), held: make(chan struct{})}
	// The servers run until Close. The end of ctx ends only the questions to the user.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	set.cancel = cancel
	for _, cfg := range servers {
		m := &member{server: server{Server: cfg, o: &set.o}}
		set.servers = append(set.servers, m)
		if m.Disabled || m.Fault != nil {
			m.idle = true
			m.failed = m.Fault
			continue
		}
		if err := set.admit(ctx, cfg); err != nil {
			m.idle = true
			m.fail(err)
			continue
		}
		set.starts.Go(func() {
			// Its sandbox comes with Hold.
			if m.confined() {
				select {
				case <-set.held:
				case <-life.Done():
				}
			}
			if _, err := m.connected(life); err != nil && life.Err() == nil {
				m.fail(err)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			m.ready = true
		})
	}
	go func() {
		set.starts.Wait()
		close(set.started)
	}()
	return set
}

// Hold implements tool.Held.
func (s *Set) Hold(box *guard.Sandbox) {
	s.hold.Do(func() {
		s.o.Sandbox = box
		close(s.held)
	})
}

// Close ends every server and waits for their processes.
func (s *Set) Close() {
	s.cancel()
	<-s.started
	var wg sync.WaitGroup
	for _, m := range s.servers {
		wg.Go(m.close)
	}
	wg.Wait()
}

func (s *Set) admit(ctx context.Context, cfg Server) error {
	if cfg.Project == "" {
		return nil
	}
	hash, err := cfg.hash()
	if err != nil {
		return err
	}
	return s.approved(ctx, trustCommand, cfg, hash, s.o.Ask, func() string {
		return fmt.Sprintf("%s in %s names the MCP server %s. It would be started like this:\n  %s\n%s\nAn approval "+
			"from the command line can give it more.\nApprove it?",
			ProjectFile, cfg.Project, cfg.Name, tool.Visible(cfg.How()), cfg.Beyond())
	})
}

// approval describes what of a project's server a user approves: how it is started, or its tools.
func (s Server) approval(kind, hash string) consent.Approval {
	return consent.Approval{Kind: kind, Name: s.Name, Dir: s.Project, Hash: hash}
}

// approved looks an approval up, and asks for it unless ask is nil.
func (s *Set) approved(ctx context.Context, kind string, cfg Server, hash string,
	ask func(context.Context, string) bool, question func() string) error {
	ok, err := s.o.Trust.Allow(ctx, cfg.approval(kind, hash), ask, question)
	if err == nil && !ok {
		err = cfg.unapproved()
	}
	return err
}

func (s *Set) Tools(ctx context.Context) tool.Offer {
	if !s.waited {
		s.waited = true
		limit := time.NewTimer(s.o.FirstWait)
		defer limit.Stop()
		select {
		case <-s.started:
		case <-limit.C:
		case <-ctx.Done():
		}
	}
	var news []string
	changed := false
	for _, m := range s.servers {
		if m.idle && m.news != "" || m.Disabled {
			continue
		}
		m.refresh(ctx)
		text := s.newsOf(ctx, m)
		if text != m.news {
			m.news = text
			if text != "" {
				news = append(news, text)
			}
		}
		m.mu.Lock()
		changed = changed || m.seen != m.version
		m.seen = m.version
		m.mu.Unlock()
	}
	if changed {
		s.offer.Version++
		s.offer.Tools = s.all()
	}
	out := s.offer
	out.News = news
	return out
}

// newsOf returns the news of a server, empty if all is well. It asks the user about changed
// descriptions of tools.
func (s *Set) newsOf(ctx context.Context, m *member) string {
	m.mu.Lock()
	failed, ready, hash, tools := m.failed, m.ready || m.idle, m.said, m.tools
	m.mu.Unlock()
	switch {
	case failed != nil:
		return fmt.Sprintf("The MCP server %s is not there: %s. Its tools are missing, the others work.", m.Name,
			strings.TrimRight(oneLine(failed.Error()), "."))
	case !ready && tools == nil:
		return fmt.Sprintf("The MCP server %s is still starting; its tools come when it is ready.", m.Name)
	case m.Project == "" || hash == m.allowed:
		return ""
	default:
		ask := s.o.Ask
		if hash == m.refused { // asked already; it may have been approved elsewhere meanwhile
			ask = nil
		}
		err := s.approved(ctx, trustTools, m.Server, hash, ask, func() string {
			question := fmt.Sprintf("This is what the MCP server %s says of its tools:\n", m.Name)
			for _, t := range describe(m.Server, tools) {
				question += t.String() + "\n"
			}
			return question + "Approve them?"
		})
		if err == nil || hash != m.refused { // the answer changes what is offered: Tools has to list it again
			m.mu.Lock()
			m.version++
			m.mu.Unlock()
		}
		if err == nil {
			m.allowed = hash
			return ""
		}
		m.refused, m.allowed = hash, ""
	}
	return fmt.Sprintf(
		"The tools of the MCP server %s are left out: no user has approved what it now says of them.", m.Name)
}

func (s *Set) all() []tool.Tool {
	var out []tool.Tool
	taken := make(map[string]bool)
	for _, m := range s.servers {
		m.mu.Lock()
		tools, hash, failed := m.tools, m.said, m.failed
		m.mu.Unlock()
		if failed != nil || m.Project != "" && hash != m.allowed {
			continue
		}
		for _, t := range tools {
			r := newRemote(&m.server, t, taken)
			taken[r.spec.Name] = true
			out = append(out, r)
		}
	}
	return out
}
