// Package bench measures the program, beside what a user would use instead where there is
// such a thing: World beside git, Hooks beside a hook that does nothing, and what a replay of
// recorded runs would have answered. It is a module of its own, with benchmarks only:
//
//	go test -C cmd/anamnesis-bench -bench World -benchtime 9x -dir DIR
//	go test -C cmd/anamnesis-bench -bench Hooks -benchtime 200x
//	go test -C cmd/anamnesis-bench -bench 'Replay|Facts' -benchtime 1x -data DIR -source NAME -out FILE
//
// Compare two versions with benchstat.
package bench
