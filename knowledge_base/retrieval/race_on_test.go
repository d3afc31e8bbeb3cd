//go:build race

package retrieval

// raceBuild: the race detector makes the arithmetic of training and search
// ten times slower and has nothing to find in it.
const raceBuild = true
