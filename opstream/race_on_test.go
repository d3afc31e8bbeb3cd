//go:build race

package opstream

// raceBuild says that the race detector is on, whose shadow memory is not
// opstream's.
const raceBuild = true
