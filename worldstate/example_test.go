package worldstate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"anamnesis/worldstate"
)

// A directory is saved, spoiled, and brought back.
func Example() {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	dir := filepath.Join(top, "project")
	note := filepath.Join(dir, "note.txt")
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	check(os.Mkdir(dir, 0o755))
	check(os.WriteFile(note, []byte("good"), 0o644))

	ctx := context.Background()
	w, err := worldstate.Open(dir, filepath.Join(top, "store"), nil)
	check(err)
	defer w.Close()
	_, err = w.Recover(ctx) // finish what a killed process left
	check(err)
	good, err := w.Save(ctx, worldstate.SaveOptions{Message: "step 1: good", Ref: "1"})
	check(err)

	check(os.WriteFile(note, []byte("bad"), 0o644))
	_, err = w.Save(ctx, worldstate.SaveOptions{Message: "step 2: bad", Parent: good.ID, Ref: "2"})
	check(err)
	plan, err := w.Plan(ctx, good.ID, nil)
	check(err)
	res, err := w.Restore(ctx, plan)
	check(err)
	text, err := os.ReadFile(note)
	check(err)
	fmt.Println(res.Written, res.Exact, string(text))
	// Output: [note.txt] true good
}
