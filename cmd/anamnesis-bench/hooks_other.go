//go:build unix && !linux

package main

import "github.com/spf13/cobra"

// hooksCommand is missing where worlds are not watched.
func hooksCommand() *cobra.Command { return &cobra.Command{Use: "hooks", Hidden: true} }
