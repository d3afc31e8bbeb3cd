package depot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Install writes the project's commands as programs that call this one.
func (w *Project) Install(program, bin string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	data, err := json.Marshal(w.Puzzle)
	if err != nil {
		return fmt.Errorf("encode the puzzle: %w", err)
	}
	file := filepath.Join(bin, "puzzle.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	for _, name := range []string{"npm", "curl"} {
		line := fmt.Sprintf("#!/bin/sh\nexec %q %s %q %q %q %s \"$@\"\n", program, CommandVerb, file, w.Dir, w.Outside, name)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(line), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// CommandVerb is the argument with which a program plays one command of a project.
const CommandVerb = "memory-command"

// CommandMain plays one command of a project and exits if this process was started for
// that; otherwise it returns at once. A program given to [Project.Install] calls it first
// in main. The arguments are the
// puzzle's file, the directory, the outside directory, and the words of the
// command; the exit code is the command's, 125 where it could not be played.
func CommandMain() {
	if len(os.Args) < 2 || os.Args[1] != CommandVerb {
		return
	}
	out, exit, err := command(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	fmt.Print(out)
	os.Exit(exit)
}

func command(args []string) (out string, exit int, err error) {
	if len(args) < 4 {
		return "", 0, errors.New("want PUZZLE DIR OUTSIDE COMMAND…")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return "", 0, err
	}
	pr := &Project{Puzzle: new(Puzzle), Dir: args[1], Outside: args[2]}
	if err := json.Unmarshal(data, pr.Puzzle); err != nil {
		return "", 0, fmt.Errorf("read the Puzzle: %w", err)
	}
	return pr.Run(strings.Join(args[3:], " "))
}
