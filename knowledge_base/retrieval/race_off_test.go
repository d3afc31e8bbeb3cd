//go:build !race

package retrieval

const raceBuild = false
