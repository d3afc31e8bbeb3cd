//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"anamnesis/opstream"
	"anamnesis/orchestrator/guard"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain() // the test binary is the program that supervises, too
	if os.Getenv("ANAMNESIS_TEST_MAIN") != "" {
		crashMain()
	}
	if file := os.Getenv(peakEnv); file != "" {
		peakMain(file)
	}
	// Most of their time they wait for processes, terminals and the disk. The flag -parallel says otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	testscript.Main(m, map[string]func(){"anamnesis": main, "append": appendMain})
}

// appendMain appends each line of the standard input to a stream as the body of an operation, and prints its number
// once it is durable: append DIR KIND [STEP].
func appendMain() {
	step := 0
	if len(os.Args) > 3 {
		step, _ = strconv.Atoi(os.Args[3])
	}
	log, err := opstream.Open(os.Args[1], nil)
	if err == nil {
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, opstream.MaxBodyBytes+1)
		for err == nil && lines.Scan() {
			var seq uint64
			if seq, err = log.Append(context.Background(), opstream.Entry{Kind: os.Args[2], Step: step, Body: bytes.Clone(lines.Bytes())}); err == nil {
				fmt.Println(seq)
			}
		}
		err = errors.Join(err, log.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestScripts runs the user stories: one txtar script a story, each against
// the real program in a process of its own.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts found (err %v)", err)
	}
	forgetful, embeddings, engine := forgetfulServer(t), embedServer(t), searchServer(t)
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": cmdExitCode,
			"running":  cmdRunning,
			"waitask":  cmdWaitAsk,
			"waitfile": cmdWaitFile,
		},
		Condition: condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("ANAMNESIS_HOME", filepath.Join(env.WorkDir, ".home"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".user"))
			env.Setenv("FORGETFUL_URL", forgetful)
			env.Setenv("EMBED_URL", embeddings)
			env.Setenv("SEARCH_URL", engine)
			for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE"} {
				env.Setenv(name, goEnv(t, name))
			}
			return nil
		},
	})
}
