// Package bench compares the program with what a user would use instead: World with git, Hooks
// with a hook that does nothing. Replay and Facts measure what it would have answered in
// recorded runs. It is a module of its own, with benchmarks only:
//
//	go test -C cmd/anamnesis-bench -bench World -benchtime 9x -dir DIR
//	go test -C cmd/anamnesis-bench -bench Hooks -benchtime 200x
//	go test -C cmd/anamnesis-bench -bench 'Replay|Facts' -benchtime 1x -data DIR -source NAME -out FILE
//
// Compare two versions with benchstat.
package bench
