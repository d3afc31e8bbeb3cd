// Package demo holds the data of `anamnesis demo`: two small real Go modules with the same trap,
// and the model's replies for each. Nothing else of the demo is recorded.
package demo

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed one.txtar two.txtar one.yaml two.yaml
var files embed.FS

// EAS is the attention span of the demo's recorded model, in tokens: small, so that even a
// short wrong path exceeds it.
const EAS = 4000

// Request is the request of both tasks.
const Request = "The tests of this module fail: it adds up large amounts of money and is wrong by a cent. Make them pass without changing the tests."

// Task is one task of the demo, laid out in a folder.
type Task struct {
	ID     string
	Dir    string // the module: the task's world
	Script string // the model's replies
}

// Lay writes the two modules and the two scripts below dir and returns the tasks in order.
func Lay(dir string) ([]Task, error) {
	var tasks []Task
	for _, t := range []struct{ id, name, module string }{
		{"demo_one", "one", "ledger"},
		{"demo_two", "two", "invoice"},
	} {
		task := Task{ID: t.id, Dir: filepath.Join(dir, t.module), Script: filepath.Join(dir, "scripts", t.name+".yaml")}
		if err := lay(task, t.name); err != nil {
			return nil, fmt.Errorf("lay out the demo in %s: %w", dir, err)
		}
		tasks = append(tasks, task)
	}
	return tasks, nil
}

func lay(t Task, name string) error {
	for _, dir := range []string{t.Dir, filepath.Dir(t.Script)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	words, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.Script, words, 0o644); err != nil {
		return err
	}
	archive, err := files.ReadFile(name + ".txtar")
	if err != nil {
		return err
	}
	for _, f := range txtar.Parse(archive).Files {
		if err := os.WriteFile(filepath.Join(t.Dir, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
