// Package names resolves arguments of the command line: a task or a card by the beginning of
// its name, or the last task if none is named. It offers the same names for shell completion.
package names

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/spelling"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// maxFits is how many similar names an error lists.
const maxFits = 5

// Task returns the task of a name, or the only one whose name begins so. For an unknown name that is
// similar to one, the error names that one; another is returned unchanged, and its user reports it.
func Task(h taskdir.Home, name string) (string, error) {
	if taskdir.CheckTaskID(name) == nil && h.HasTask(name) {
		return name, nil
	}
	all, err := h.Tasks()
	if err != nil {
		return "", err
	}
	return pick("task", name, all, taskdir.ErrNoTask)
}

// Cards replaces beginnings of ids by the whole ids of cards, and of repairs that are no cards yet.
func Cards(store *knowledgebase.Store, ids []string, repairs ...*card.Card) ([]string, error) {
	var all []string
	for _, e := range store.List() {
		all = append(all, e.ID)
	}
	for _, c := range repairs {
		all = append(all, c.ID)
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		var err error
		if out[i], err = pick("card", id, all, knowledgebase.ErrNotFound); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Repairs returns what tasks of a home repaired and no card of a store says, the newest first; if there
// are ids or beginnings of ids, only these.
func Repairs(h taskdir.Home, store *knowledgebase.Store, ids []string) ([]*card.Card, error) {
	all := memory.PairsWaiting(h, store)
	if len(ids) == 0 {
		return all, nil
	}
	ids, err := Cards(store, ids, all...)
	if err != nil {
		return nil, err
	}
	var out []*card.Card
	for _, id := range ids {
		i := slices.IndexFunc(all, func(c *card.Card) bool { return c.ID == id })
		if i < 0 {
			if _, err := store.Get(id); err == nil {
				return nil, session.Usagef("kb repairs: %s is a card already; 'anamnesis kb show %s' prints it", id, id)
			}
			return nil, session.Usagef("no repair %s; 'anamnesis kb repairs' lists them", id)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// ToResume reads [TASK] [MESSAGE]: a single argument that names no task and holds a space is a
// message to the last task of the directory.
func ToResume(svc *session.Service, dir string, args []string) (id, message string, err error) {
	if len(args) == 2 || len(args) == 1 && !strings.ContainsAny(args[0], " \t\n") {
		id, err = Task(svc.Home, args[0])
		return id, strings.Join(args[1:], ""), err
	}
	if len(args) == 1 {
		message = args[0]
	}
	id, err = svc.LastOwnTask(dir)
	return id, message, err
}

// Snapshots returns the named snapshots. Without a home, steps are looked up in the store
// only.
func Snapshots(ctx context.Context, home func() (taskdir.Home, error), w *worldstate.World, task string,
	names []string) ([]worldstate.ID, error) {
	h, err := home()
	if err != nil {
		h = taskdir.Home{}
	}
	ids := make([]worldstate.ID, len(names))
	for i, name := range names {
		if ids[i], err = workspace.Resolve(ctx, h, w, task, name); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Decided replaces beginnings of ids in a decision by the whole ids, and rejects one that is
// named twice. A repair that is approved or rejected becomes a card.
func Decided(ctx context.Context, h taskdir.Home, store *knowledgebase.Store, d *review.Decision) error {
	for i, id := range d.IDs {
		if slices.Contains(d.IDs[:i], id) || id == d.By {
			return session.Usagef("kb %s: %s is named twice", d.Act, id)
		}
	}
	var repairs []*card.Card
	if d.Act == review.Approve || d.Act == review.Reject {
		repairs = memory.PairsWaiting(h, store)
	}
	ids, err := Cards(store, append(slices.Clone(d.IDs), d.By), repairs...)
	if err != nil {
		return err
	}
	d.IDs, d.By = ids[:len(d.IDs)], ids[len(d.IDs)]
	repairs = slices.DeleteFunc(repairs, func(c *card.Card) bool { return !slices.Contains(d.IDs, c.ID) })
	if len(repairs) == 0 {
		return nil
	}
	for _, id := range d.IDs { // nothing is written if one is unknown
		if _, err := store.Get(id); err != nil &&
			!slices.ContainsFunc(repairs, func(c *card.Card) bool { return c.ID == id }) {
			return fmt.Errorf("%s: card %q: %w", d.Act, id, knowledgebase.ErrNotFound)
		}
	}
	_, err = store.Apply(ctx, knowledgebase.Change{By: knowledgebase.Person, Cards: repairs})
	return err
}

func pick(what, name string, all []string, unknown error) (string, error) {
	if name == "" || slices.Contains(all, name) {
		return name, nil
	}
	var fits []string
	for _, n := range all {
		if strings.HasPrefix(n, name) {
			fits = append(fits, n)
		}
	}
	i := slices.IndexFunc(fits, func(n string) bool { return strings.HasPrefix(n, name+"_") })
	if i >= 0 && !slices.ContainsFunc(fits[i+1:], func(n string) bool {
		return strings.HasPrefix(n, name+"_") && !strings.HasPrefix(n, fits[i]+".")
	}) {
		return fits[i], nil // the task of this number, not of a longer one, nor a subagent's
	}
	switch n := len(fits); {
	case n == 0:
		if near := spelling.Nearest(name, all); near != "" {
			return "", fmt.Errorf("%w: %s; did you mean %s?", unknown, name, near)
		}
		return name, nil
	case n == 1:
		return fits[0], nil
	case n > maxFits:
		fits = append(fits[:maxFits], fmt.Sprintf("%d more", n-maxFits))
	}
	return "", exit.Usagef("%s %q could be %s; name more of it", what, name, strings.Join(fits, ", "))
}

// OnTask splits arguments into a task and a range of others. Without a name, it is the task
// that last worked in the current directory. A first argument that can be either is the task,
// unless it is a number that is not a task's id.
func OnTask(svc *session.Service, args []string, least, most int) (task string, rest []string, err error) {
	named := len(args) > most
	if !named && len(args) > least {
		_, err := strconv.ParseUint(args[0], 10, 64)
		named = err != nil || svc.Home.HasTask(args[0])
	}
	if !named {
		task, err = svc.LastTask(".")
		return task, args, err
	}
	task, err = Task(svc.Home, args[0])
	return task, args[1:], err
}
