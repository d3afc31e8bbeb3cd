//go:build !race

package opstream

const raceBuild = false
