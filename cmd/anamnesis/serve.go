//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/page"
	knowledgebase "anamnesis/knowledge_base"
)

// mirrorTime is how often the page looks for what is new in a bucket.
const mirrorTime = 10 * time.Second

func (a *app) serveCommand() *cobra.Command {
	var dir, addr string
	var origins []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show cards and tasks in a browser, on this machine only",
		Long: `Show the review of cards and the timelines of tasks, and steer tasks, as a web page on this machine
only. Open the printed address: its token gives your browser access. Whoever has the token can do what you can do.
It is valid until the server ends, or until you end a browser's session on the page. With --origin, a proxy or
tunnel of yours may make the page reachable by another name. Ctrl-C ends the server.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.serve(cmd.Context(), dir, addr, origins)
		},
	}
	chooseKB(cmd, &dir)
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0",
		"where to listen: a loopback address and a port, 0 for any free one")
	cmd.Flags().StringArrayVar(&origins, "origin", nil,
		"`URL` at which a proxy of yours reaches the server, such as https://HOST (repeatable)")
	return a.jsonFlag(cmd, "the address as one JSON object")
}

func (a *app) serve(ctx context.Context, dir, addr string, origins []string) error {
	svc, err := a.service()
	if err != nil {
		return err
	}
	a.sayUnexamined(svc.Home)
	l, err := page.Listen(addr)
	if errors.Is(err, page.ErrNotLoopback) {
		return exit.Usagef("serve: %w; use 127.0.0.1:PORT, or [::1]:PORT", err)
	}
	if err != nil {
		return exit.Usagef("serve: %w; 127.0.0.1:0 is any free port", err)
	}
	defer l.Close()
	store, err := a.openKB(dir, existing, knowledgebase.Options{Watch: true})
	if err != nil {
		return err
	}
	defer store.Close()
	say := func(urls []string) error {
		return a.show(map[string]any{"url": urls[0], "addr": l.Addr().String(), "urls": urls}, func() {
			for _, url := range urls {
				a.printf("open %s\n", url)
			}
		})
	}
	if a.mirror != nil {
		go func() {
			for range time.Tick(mirrorTime) {
				_ = a.mirror(ctx, "") // the next tick tries again; a lasting fault is reported at the start
			}
		}()
	}
	s, err := page.New(l.Addr(), page.Options{Tasks: svc, Store: store, Origins: origins, Mirror: a.mirror,
		Renewed: func(urls []string) {
			if !a.json {
				a.printf("a session was ended, and the earlier addresses with it\n")
			}
			_ = say(urls) // the page shows them, too
		}})
	if err != nil {
		return exit.Usagef("serve: %w", err)
	}
	if err := say(s.URLs()); err != nil {
		return err
	}
	if !a.json {
		a.printf("Ctrl-C ends this\n")
	}
	return s.Serve(ctx, l)
}
