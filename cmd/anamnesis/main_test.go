//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

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
	testscript.Main(m, map[string]func(){"anamnesis": main})
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
