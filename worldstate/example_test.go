package worldstate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/worldstate"
)

// project is a new directory with a world opened on it, and a place to write.
type project struct {
	top, dir string
	world    *worldstate.World
}

func newProject() project {
	top, err := os.MkdirTemp("", "example")
	check(err)
	p := project{top: top, dir: filepath.Join(top, "project")}
	check(os.Mkdir(p.dir, 0o755))
	// The store is made on first use, anywhere outside the directory.
	p.world, err = worldstate.Open(p.dir, filepath.Join(top, "store"), nil)
	check(err)
	// Whoever opens a world first ends what a killed process may have left.
	_, err = p.world.Recover(context.Background())
	check(err)
	return p
}

func (p project) write(name, text string) {
	check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644))
}

func (p project) close() {
	check(p.world.Close())
	check(os.RemoveAll(p.top))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A directory is saved, spoiled, and brought back.
func Example() {
	ctx := context.Background()
	p := newProject()
	defer p.close()
	p.write("note.txt", "good")
	good, err := p.world.Save(ctx, worldstate.SaveOptions{Message: "step 1: good", Ref: "1"})
	check(err)

	p.write("note.txt", "bad")
	_, err = p.world.Save(ctx, worldstate.SaveOptions{Message: "step 2: bad", Parent: good.ID, Ref: "2"})
	check(err)
	plan, err := p.world.Plan(ctx, good.ID, nil)
	check(err)
	res, err := p.world.Restore(ctx, plan)
	check(err)
	text, err := os.ReadFile(filepath.Join(p.dir, "note.txt"))
	check(err)
	fmt.Println(res.Written, res.Exact, string(text))
	// Output: [note.txt] true good
}

// A save of a world that has not changed makes no new snapshot.
func ExampleWorld_Save() {
	ctx := context.Background()
	p := newProject()
	defer p.close()
	p.write("a.txt", "a")
	p.write("b.txt", "b")
	first, err := p.world.Save(ctx, worldstate.SaveOptions{Message: "two files", Ref: "1"})
	check(err)
	again, err := p.world.Save(ctx, worldstate.SaveOptions{Message: "nothing new", Parent: first.ID, Ref: "2"})
	check(err)
	fmt.Println(first.Files, first.Changed, first.Complete)
	fmt.Println(again.ID == first.ID, again.Changed)
	// Output:
	// 2 2 true
	// true 0
}

// A plan says what a restore would do. What was changed since the last save
// is a user's edit, and stays unless OverwriteEdits is set.
func ExampleWorld_Plan() {
	ctx := context.Background()
	p := newProject()
	defer p.close()
	p.write("code.go", "package one")
	first, err := p.world.Save(ctx, worldstate.SaveOptions{Ref: "1"})
	check(err)
	p.write("code.go", "package two")
	p.write("new.go", "package two")
	_, err = p.world.Save(ctx, worldstate.SaveOptions{Parent: first.ID, Ref: "2"})
	check(err)
	p.write("mine.txt", "written by hand")

	plan, err := p.world.Plan(ctx, first.ID, nil)
	check(err)
	fmt.Println("write", plan.Write, "delete", plan.Delete)
	for _, k := range plan.Keep {
		fmt.Println("keep", k.Path+":", k.Reason)
	}
	// Output:
	// write [code.go] delete [new.go]
	// keep mine.txt: created since the last snapshot
}

// Some paths can be brought back alone, and forward as well as back.
func ExampleWorld_RestoreTo() {
	ctx := context.Background()
	p := newProject()
	defer p.close()
	p.write("a.txt", "1")
	p.write("b.txt", "1")
	first, err := p.world.Save(ctx, worldstate.SaveOptions{Ref: "1"})
	check(err)
	p.write("a.txt", "2")
	p.write("b.txt", "2")
	second, err := p.world.Save(ctx, worldstate.SaveOptions{Parent: first.ID, Ref: "2"})
	check(err)

	only := worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{Paths: []string{"a.txt"}}}
	back, err := p.world.RestoreTo(ctx, first.ID, only)
	check(err)
	forward, err := p.world.RestoreTo(ctx, second.ID, worldstate.RestoreOptions{})
	check(err)
	fmt.Println(back.Written, back.Exact)
	fmt.Println(forward.Written, forward.Exact)
	// Output:
	// [a.txt] false
	// [a.txt] true
}

// Diff, Renames and Patch follow one another.
func ExampleWorld_Diff() {
	ctx := context.Background()
	p := newProject()
	defer p.close()
	p.write("old name.txt", "one\ntwo\nthree\n")
	first, err := p.world.Save(ctx, worldstate.SaveOptions{Ref: "1"})
	check(err)
	check(os.Rename(filepath.Join(p.dir, "old name.txt"), filepath.Join(p.dir, "new name.txt")))
	p.write("new name.txt", "one\ntwo\nthree\nfour\n")
	second, err := p.world.Save(ctx, worldstate.SaveOptions{Parent: first.ID, Ref: "2"})
	check(err)

	changes, err := p.world.Diff(ctx, first.ID, second.ID)
	check(err)
	changes, err = p.world.Renames(ctx, changes)
	check(err)
	for _, c := range changes {
		fmt.Println(c.Kind, c.From, "->", c.Path, c.Similarity)
	}
	var patch strings.Builder
	check(p.world.Patch(ctx, &patch, changes))
	fmt.Println(strings.Contains(patch.String(), "\n+four\n"))
	// Output:
	// renamed old name.txt -> new name.txt 73
	// true
}

// A fork is a new directory with the files of an old snapshot.
func ExampleWorld_Fork() {
	ctx := context.Background()
	p := newProject()
	defer p.close()
	p.write("a.txt", "as it was")
	first, err := p.world.Save(ctx, worldstate.SaveOptions{Ref: "1"})
	check(err)
	p.write("a.txt", "as it is")

	made, err := p.world.Fork(ctx, first.ID, filepath.Join(p.top, "fork"))
	check(err)
	text, err := os.ReadFile(filepath.Join(made.Dir, "a.txt"))
	check(err)
	fmt.Println(made.Files, string(text))
	// Output: 1 as it was
}
