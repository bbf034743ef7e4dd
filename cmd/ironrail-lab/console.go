// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/supervisor"
	"github.com/ironrail/ironrail/internal/errkind"
)

// runConsole prints the console's file. What a guest prints is not trusted: its
// control characters are shown, unless --raw is given.
func runConsole(ctx context.Context, c *cli, args []string) error {
	f := c.flags("console")
	dir := dirFlag(f)
	follow := f.Bool("follow", false, "go on with what comes")
	raw := f.Bool("raw", false, "do not escape control characters")
	words, err := parseFlags(f, args, 1)
	if err != nil {
		return err
	}
	name, err := consoleFile(*dir, words[0])
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return errkind.New(errkind.Refused, "machine %s has printed nothing yet", words[0]).Do("switch it on by its BMC")
	}
	if err != nil {
		return err
	}
	defer file.Close()
	out := c.stdout
	if !*raw {
		out = &escaper{w: c.stdout}
	}
	for {
		if _, err := io.Copy(out, file); err != nil || !*follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func consoleFile(dir, machine string) (string, error) {
	abs, err := stateDir(dir)
	if err != nil {
		return "", err
	}
	lab, err := supervisor.Load(abs)
	if err != nil {
		return "", err
	}
	for _, m := range lab.Machines {
		if m.Name == machine {
			return lab.FilesOf(machine).Console, nil
		}
	}
	return "", errkind.New(errkind.Refused, "machine %q is not in this lab", machine).Do("ironrail-lab status lists them")
}

// escaper writes text on with its control characters made visible; carriage
// returns and backspaces are dropped, line feeds and tabs kept.
type escaper struct{ w io.Writer }

// Write implements io.Writer; it reports all of b as written.
func (e *escaper) Write(b []byte) (int, error) {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		switch {
		case c == '\r' || c == '\b':
		case c == '\n' || c == '\t' || c >= ' ' && c <= '~':
			out = append(out, c)
		default:
			out = fmt.Appendf(out, `\x%02x`, c)
		}
	}
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
