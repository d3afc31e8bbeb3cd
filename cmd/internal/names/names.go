// Package names finds what an argument of the command line names: a task or a card by
// the beginning of its name, or the task last worked on where none is named. It offers
// the same names to the completion of shells.
package names

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// maxFits is how many names that begin alike an error lists.
const maxFits = 5

// Task returns the task of a name, or the only one whose name begins so. A name that no
// task has is returned as it is: whoever looks for it says so.
func Task(h taskdir.Home, name string) (string, error) {
	if taskdir.CheckTaskID(name) == nil && h.HasTask(name) {
		return name, nil
	}
	all, err := h.Tasks()
	if err != nil {
		return "", err
	}
	return pick("task", name, all)
}

// Cards replaces beginnings of cards' ids by the whole ids.
func Cards(store *knowledgebase.Store, ids []string) ([]string, error) {
	var all []string
	for _, e := range store.List() {
		all = append(all, e.ID)
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		var err error
		if out[i], err = pick("card", id, all); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func pick(what, name string, all []string) (string, error) {
	if name == "" || slices.Contains(all, name) {
		return name, nil
	}
	var fits []string
	for _, n := range all {
		if strings.HasPrefix(n, name) {
			fits = append(fits, n)
		}
	}
	switch n := len(fits); {
	case n == 0:
		return name, nil
	case n == 1:
		return fits[0], nil
	case n > maxFits:
		fits = append(fits[:maxFits], fmt.Sprintf("%d more", n-maxFits))
	}
	return "", exit.Usagef("%s %q could be %s; name more of it", what, name, strings.Join(fits, ", "))
}

// OnTask splits arguments into a task and at least, at most, so many others. The name may
// be left out: then it is the task that last worked in the current directory. A first
// argument that can be either is the task, unless it is a number that no task is called.
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
