package beside

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/orchestrator/search"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// SessionsOf lists the sessions that were recorded of an agent.
func SessionsOf(h taskdir.Home, agent sessions.Agent) ([]taskdir.Summary, error) {
	all, err := taskdir.Summaries(h)
	return slices.DeleteFunc(all, func(t taskdir.Summary) bool {
		return t.Agent != string(agent) || t.Imported
	}), err
}

// Purge deletes sessions with their snapshots: the whole store if no other task uses it,
// else the sessions' own snapshots. No recorder may be running.
func Purge(ctx context.Context, svc *session.Service, list []taskdir.Summary) error {
	h := svc.Home
	stores := map[string]bool{} // that another task uses
	for _, t := range list {
		stores[h.Store(t.Dir)] = false
		// a later session of that id is looked up anew
		if st, err := svc.State(t.ID); err == nil && st.Opened.Origin != nil {
			_ = os.Remove(sessionFile(h, sessions.Agent(t.Agent), st.Opened.Origin.Session))
		}
		events := filepath.Join(all(h), t.ID+".events")
		for _, path := range []string{h.Task(t.ID), deliveredFile(h, t.ID), events, keptStore(h, t.ID)} {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	if err := search.Remove(h); err != nil { // it has the words of the sessions
		return err
	}
	left, err := svc.Tasks()
	if err != nil {
		return err
	}
	for _, t := range left {
		if store := h.Store(t.Dir); !t.Imported {
			if _, ok := stores[store]; ok {
				stores[store] = true
			}
		}
	}
	for store, used := range stores {
		if used {
			ignore := func(worldstate.GCReport) {}
			err = svc.CollectGarbage(ctx, session.Place{Store: store}, false, worldstate.GCOptions{}, ignore)
		} else {
			err = errors.Join(os.RemoveAll(store), os.RemoveAll(folderOf(h, store)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waiting counts the events that have waited for more than a minute.
func waiting(h taskdir.Home) (n int) {
	folders, _ := os.ReadDir(all(h)) // none: nothing waits
	for _, f := range folders {
		events, _ := os.ReadDir(filepath.Join(all(h), f.Name()))
		for _, e := range events {
			if strings.HasSuffix(e.Name(), eventEnding) && time.Since(spooledAt(e.Name())) > time.Minute {
				n++
			}
		}
	}
	return n
}
