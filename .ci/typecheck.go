// Typecheck checks the types of the named packages and of all that they import, for the system that GOOS and GOARCH
// name. It generates no code, which is most of a build, and leaves out the bodies of other modules' functions.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		Main      bool
		GoVersion string
	}
}

type importer struct {
	names map[string]string // by the path in the source: where a vendored package is
	done  map[string]*types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if mapped, ok := i.names[path]; ok {
		path = mapped
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s was not listed", path)
}

func main() {
	list := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module"}, os.Args[1:]...)...)
	list.Env, list.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	out, err := list.StdoutPipe()
	if err == nil {
		err = list.Start()
	}
	fset, done, own, faults := token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}, 0, 0
	report := func(err error) {
		faults++
		fmt.Fprintln(os.Stderr, err)
	}
	for dec := json.NewDecoder(out); err == nil; { // a package follows those that it imports
		var p listed
		if err = dec.Decode(&p); err != nil || p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // a test's main
			continue
		}
		conf := types.Config{Importer: importer{p.ImportMap, done}, Error: report, FakeImportC: true, Sizes: types.SizesFor("gc", os.Getenv("GOARCH"))}
		conf.IgnoreFuncBodies = p.Module == nil || !p.Module.Main
		if p.Module != nil && p.Module.GoVersion != "" {
			conf.GoVersion = "go" + p.Module.GoVersion
		}
		if !conf.IgnoreFuncBodies {
			own++
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				report(err)
				continue
			}
			files = append(files, f)
		}
		done[p.ImportPath], _ = conf.Check(p.ImportPath, fset, files, nil)
	}
	if !errors.Is(err, io.EOF) {
		report(err)
	}
	if err := list.Wait(); err != nil {
		report(err)
	}
	if own == 0 || faults > 0 {
		fmt.Fprintf(os.Stderr, "typecheck: %d faults in %d packages of this module\n", faults, own)
		os.Exit(1)
	}
	fmt.Printf("%d packages, %d of this module\n", len(done), own)
}
