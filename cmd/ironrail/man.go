// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/cmd/ironrail/manual"
)

func (a *app) manCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Print the manual page of a command, or write all of them",
		Long: `Print the page of a command, of ironrail itself when none is named, as man(1)
reads it. With --out the pages of all commands are written, compressed: a folder
man1 in one that MANPATH names. Packages bring them.`,
		Example: "  ironrail man report sign | man -l -\n  ironrail man --out ~/.local/share/man/man1",
		Args:    asUsage(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, words []string) error {
			of, rest, err := c.Root().Find(words)
			if err != nil || len(rest) > 0 {
				return wrongUsage(c, fmt.Errorf("there is no command %q", strings.Join(words, " ")))
			}
			if out != "" {
				return writeManual(c.Root(), out)
			}
			_, err = a.out.Write(manual.Page(of, manualSource()))
			return err
		},
	}
	c.Flags().StringVar(&out, "out", "", "write the pages of all commands into `FOLDER`")
	return c
}

// manualSource is what pages say of this program: the version, and when its commit was made.
func manualSource() manual.Source {
	s := manual.Source{Version: thisVersion()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return s
	}
	for _, v := range info.Settings {
		if v.Key == "vcs.time" {
			s.At, _ = time.Parse(time.RFC3339, v.Value)
		}
	}
	return s
}

// writeManual writes the pages of all commands. The same program writes the same bytes.
func writeManual(root *cobra.Command, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, c := range manual.Commands(root) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(manual.Page(c, manualSource())); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, manual.Name(c)+".1.gz"), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
